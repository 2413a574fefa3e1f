#include "io/object/object_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "io/object/ascii.h"
#include "io/object/backoff.h"
#include "io/object/object_location.h"
#include "io/object/transfer_loop.h"

namespace muster::io {
namespace {

constexpr int64_t kMaxRetryAfterMs = 60'000;

struct RemoteObject {
  ObjectLocation location;
  ObjectInfo info;
  Validators validators;
  // Where redirects led the last time: asked first, without credentials.
  std::optional<HttpUrl> redirected;
};

// One read, or the first look of Open, through redirects and attempts.
struct Operation {
  size_t object = 0;
  WantedRange wanted;
  std::span<std::byte> dst;
  uint64_t tag = 0;

  HttpUrl url;               // of the next or the current exchange
  bool is_shortcut = false;  // `url` is where redirects led another time
  int num_redirects = 0;
  int num_attempts = 0;  // that failed
  int64_t deadline_ms = 0;
  int64_t due_ms = 0;  // when the next exchange may start
  Status last_failure;

  std::unique_ptr<Transfer> transfer;  // while an exchange is under way
  int64_t window_end_ms = 0;
  uint64_t window_begin_bytes = 0;
};

bool IsSha256(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return IsDigit(c) || (c >= 'a' && c <= 'f');
         });
}

// The same host, reached as the operator wrote it or by https instead.
bool IsOperatorsHost(const HttpUrl& origin, const HttpUrl& url) {
  const bool upgraded = !origin.tls && url.tls && origin.host == url.host &&
                        origin.port == 80 && url.port == 443;
  return upgraded || SameOrigin(origin, url);
}

bool IsStale(int status) {
  return status == 401 || status == 403 || status == 404 || status == 410;
}

}  // namespace

class ObjectClient::State {
 public:
  State(ObjectSettings settings, ObjectClientOptions options)
      : settings_(std::move(settings)),
        options_(options),
        clock_(options.clock ? *options.clock : ObjectClock::System()),
        backoff_(options.first_delay_ms, options.max_delay_ms, options.seed),
        loop_(options.max_connections) {
    CHECK_GT(options_.max_in_flight, 0u);
    CHECK_GT(options_.max_connections, 0u);
  }
  ~State() {
    for (auto& operation : operations_) StopTransfer(operation.get());
  }

  Result<ObjectId> Open(const std::string& url);
  size_t Submit(std::span<const RangeRequest> requests);
  size_t Wait(size_t min_done, std::span<RangeDone> done);
  void Cancel(uint64_t tag);
  void Interrupt();

  const ObjectInfo& Info(ObjectId id) const {
    CHECK_LT(id.index, objects_.size());
    return objects_[id.index].info;
  }
  size_t num_in_flight() const { return num_reads_ + finished_.size(); }
  const ObjectCounters& counters() const { return counters_; }

 private:
  using Operations = std::vector<std::unique_ptr<Operation>>;

  Operation* Add(size_t object, WantedRange wanted, std::span<std::byte> dst,
                 uint64_t tag);
  void Step(bool may_block);
  void StartDue();
  void StartExchange(Operation* operation);
  HttpHeaders HeadersOf(const Operation& operation) const;
  Reach ReachFor(const HttpUrl& origin, const HttpUrl& url) const;
  void Conclude(Operation* operation, CURLcode code);
  void Redirect(Operation* operation, const ResponseHead& head);
  void Retry(Operation* operation, Status why,
             std::optional<uint64_t> after_seconds);
  void Fail(Operation* operation, const Status& why, int status);
  void Take(Operation* operation, const ResponseHead& head);
  Status TakeFirstLook(const Operation& operation, const ResponseHead& head);
  void Restart(Operation* operation);
  void ExpireSlow();
  void Finish(Operation* operation, Status status);
  int64_t NextEventMs() const;
  void StopTransfer(Operation* operation);
  std::unique_ptr<Transfer> TakeTransfer();

  const ObjectSettings settings_;
  const ObjectClientOptions options_;
  ObjectClock& clock_;
  Backoff backoff_;
  TransferLoop loop_;

  std::vector<RemoteObject> objects_;
  Operations operations_;  // in the order in which they were submitted
  std::vector<std::unique_ptr<Transfer>> idle_transfers_;
  std::deque<RangeDone> finished_;
  size_t num_reads_ = 0;          // of operations_, those that are not Open's
  std::optional<Status> opened_;  // how the Open under way ended
  std::atomic<bool> interrupted_ = false;
  ObjectCounters counters_;
};

// ---- What the owner calls.

Result<ObjectId> ObjectClient::State::Open(const std::string& url) {
  ASSIGN_OR_RETURN(const ObjectUrl parsed, ParseObjectUrl(url));
  ASSIGN_OR_RETURN(ObjectLocation location, Locate(parsed, settings_));
  const size_t index = objects_.size();
  const std::string name = location.name;
  objects_.push_back({.location = std::move(location), .info = {.name = name}});
  Add(index, {.size_bytes = 1}, {}, 0);
  opened_.reset();
  StartDue();
  while (!opened_) Step(/*may_block=*/true);
  if (!opened_->ok()) {
    objects_.pop_back();
    return *opened_;
  }
  return ObjectId{index};
}

size_t ObjectClient::State::Submit(std::span<const RangeRequest> requests) {
  const size_t room = options_.max_in_flight -
                      std::min(options_.max_in_flight, num_in_flight());
  const size_t count = std::min(room, requests.size());
  for (const RangeRequest& request : requests.first(count)) {
    CHECK_LT(request.object.index, objects_.size());
    const RemoteObject& object = objects_[request.object.index];
    const uint64_t size_bytes = request.dst.size();
    CHECK_GT(size_bytes, 0u);
    CHECK_LE(size_bytes, object.info.size_bytes);
    CHECK_LE(request.offset, object.info.size_bytes - size_bytes);
    Add(request.object.index,
        {.offset = request.offset,
         .size_bytes = size_bytes,
         .object_bytes = object.info.size_bytes,
         .validators = object.validators},
        request.dst, request.tag);
    ++num_reads_;
  }
  StartDue();
  Step(/*may_block=*/false);  // the requests leave now, not at the next Wait
  return count;
}

size_t ObjectClient::State::Wait(size_t min_done, std::span<RangeDone> done) {
  CHECK_LE(min_done, num_in_flight());
  CHECK_LE(min_done, done.size());
  Step(/*may_block=*/false);
  while (finished_.size() < min_done && !interrupted_.exchange(false)) {
    Step(/*may_block=*/true);
  }
  const size_t count = std::min(done.size(), finished_.size());
  for (RangeDone& slot : done.first(count)) {
    slot = std::move(finished_.front());
    finished_.pop_front();
  }
  return count;
}

void ObjectClient::State::Cancel(uint64_t tag) {
  for (size_t i = operations_.size(); i-- > 0;) {
    Operation* operation = operations_[i].get();
    if (operation->wanted.IsFirstLook() || operation->tag != tag) continue;
    StopTransfer(operation);
    Finish(operation,
           Status(Code::kCancelled,
                  objects_[operation->object].info.name + ": cancelled"));
  }
}

void ObjectClient::State::Interrupt() {
  interrupted_ = true;
  loop_.Wake();
}

// ---- One turn: start, move bytes, conclude.

Operation* ObjectClient::State::Add(size_t object, WantedRange wanted,
                                    std::span<std::byte> dst, uint64_t tag) {
  auto operation = std::make_unique<Operation>(Operation{
      .object = object, .wanted = std::move(wanted), .dst = dst, .tag = tag});
  operation->deadline_ms = clock_.NowMs() + options_.timeout_ms;
  Restart(operation.get());
  const RemoteObject& remote = objects_[object];
  if (remote.redirected) {
    operation->url = *remote.redirected;
    operation->is_shortcut = true;
  }
  operations_.push_back(std::move(operation));
  return operations_.back().get();
}

void ObjectClient::State::Step(bool may_block) {
  if (may_block) {
    const int64_t until_event =
        std::max<int64_t>(0, NextEventMs() - clock_.NowMs());
    const bool only_time_helps = loop_.num_running() == 0;
    loop_.Wait(only_time_helps ? clock_.BeforeWait(until_event) : until_event);
  }
  for (const TransferLoop::Ended& ended : loop_.Advance()) {
    const auto it = std::find_if(
        operations_.begin(), operations_.end(),
        [&](const auto& o) { return o->transfer.get() == ended.transfer; });
    CHECK(it != operations_.end());
    Conclude(it->get(), ended.code);
  }
  ExpireSlow();
  StartDue();
}

int64_t ObjectClient::State::NextEventMs() const {
  int64_t next = std::numeric_limits<int64_t>::max();
  const bool full = loop_.num_running() >= options_.max_connections;
  for (const auto& operation : operations_) {
    next = std::min(next, operation->deadline_ms);
    if (operation->transfer) {
      next = std::min(next, operation->window_end_ms);
    } else if (!full) {
      next = std::min(next, operation->due_ms);
    }
  }
  return next;
}

void ObjectClient::State::StartDue() {
  const int64_t now = clock_.NowMs();
  for (const auto& operation : operations_) {
    if (loop_.num_running() >= options_.max_connections) return;
    if (!operation->transfer && operation->due_ms <= now) {
      StartExchange(operation.get());
    }
  }
}

void ObjectClient::State::StartExchange(Operation* operation) {
  const HttpUrl& origin = objects_[operation->object].location.url;
  operation->transfer = TakeTransfer();
  operation->transfer->Prepare({.url = operation->url,
                                .headers = HeadersOf(*operation),
                                .reach = ReachFor(origin, operation->url),
                                .wanted = operation->wanted,
                                .dst = operation->dst});
  operation->window_end_ms = clock_.NowMs() + options_.low_speed_window_ms;
  operation->window_begin_bytes = 0;
  ++counters_.num_exchanges;
  loop_.Start(operation->transfer.get());
}

HttpHeaders ObjectClient::State::HeadersOf(const Operation& operation) const {
  const ObjectLocation& location = objects_[operation.object].location;
  const WantedRange& wanted = operation.wanted;
  HttpHeaders headers = {
      {"range", fmt::format("bytes={}-{}", wanted.offset,
                            wanted.offset + wanted.size_bytes - 1)}};
  if (const auto etag = IfMatch(wanted.validators)) {
    headers.push_back({"if-match", *etag});
  }
  if (SameOrigin(location.url, operation.url)) {
    headers.insert(headers.end(), location.headers.begin(),
                   location.headers.end());
    headers = Authorize(location.credentials, operation.url, std::move(headers),
                        clock_.UnixSeconds());
  }
  // Not signed: servers on the way may change it.
  headers.push_back({"accept-encoding", "identity"});
  return headers;
}

Reach ObjectClient::State::ReachFor(const HttpUrl& origin,
                                    const HttpUrl& url) const {
  if (options_.allow_private_addresses) return Reach::kAny;
  return IsOperatorsHost(origin, url) ? ReachOf(origin) : Reach::kPublic;
}

// ---- How an exchange ended.

void ObjectClient::State::Conclude(Operation* operation, CURLcode code) {
  const Judgement judgement = operation->transfer->Conclude(code);
  const ResponseHead head = operation->transfer->head();
  idle_transfers_.push_back(std::move(operation->transfer));
  switch (judgement.verdict) {
    case Verdict::kTake:
      return Take(operation, head);
    case Verdict::kRedirect:
      return Redirect(operation, head);
    case Verdict::kRetry:
      return Retry(operation, judgement.status, head.retry_after_seconds);
    case Verdict::kFail:
      return Fail(operation, judgement.status, head.status);
  }
}

void ObjectClient::State::Redirect(Operation* operation,
                                   const ResponseHead& head) {
  ++counters_.num_redirects;
  RemoteObject& object = objects_[operation->object];
  const bool from_origin = SameOrigin(object.location.url, operation->url);
  if (from_origin && object.location.has_checksum_header &&
      operation->wanted.IsFirstLook() && IsSha256(head.linked_etag)) {
    object.info.sha256 = head.linked_etag;
  }
  if (++operation->num_redirects > options_.max_redirects) {
    return Fail(
        operation,
        IoError(fmt::format("more than {} redirects", options_.max_redirects)),
        0);
  }
  auto next = ResolveLocation(operation->url, head.location);
  if (!next.ok()) {
    return Fail(
        operation,
        Status(next.status().code(),
               "a redirect that is not followed: " + next.status().message()),
        0);
  }
  if (operation->url.tls && !next->tls) {
    return Fail(
        operation,
        InvalidArgument(fmt::format(
            "a redirect from https to plain {} is not followed", next->Name())),
        0);
  }
  operation->url = std::move(*next);
  operation->is_shortcut = false;
}

void ObjectClient::State::Retry(Operation* operation, Status why,
                                std::optional<uint64_t> after_seconds) {
  ++operation->num_attempts;
  if (operation->num_attempts >= options_.max_attempts) {
    return Fail(operation, why, 0);
  }
  int64_t delay_ms = backoff_.DelayMs(operation->num_attempts - 1);
  if (after_seconds) {
    const auto asked_ms = static_cast<int64_t>(
        std::min<uint64_t>(*after_seconds, kMaxRetryAfterMs / 1000) * 1000);
    delay_ms = std::max(delay_ms, asked_ms);
  }
  const int64_t due_ms = clock_.NowMs() + delay_ms;
  if (due_ms >= operation->deadline_ms) return Fail(operation, why, 0);
  ++counters_.num_retries;
  Restart(operation);
  operation->due_ms = due_ms;
  operation->last_failure = std::move(why);
}

// From the operator's URL, which may lead elsewhere by now.
void ObjectClient::State::Restart(Operation* operation) {
  operation->url = objects_[operation->object].location.url;
  operation->is_shortcut = false;
  operation->num_redirects = 0;
  operation->due_ms = 0;
}

void ObjectClient::State::Fail(Operation* operation, const Status& why,
                               int status) {
  RemoteObject& object = objects_[operation->object];
  // Signed URLs that redirects led to expire.
  if (operation->is_shortcut && IsStale(status)) {
    object.redirected.reset();
    return Restart(operation);
  }
  std::string message = object.info.name;
  if (!operation->wanted.IsFirstLook()) {
    message += fmt::format(
        ": bytes {}-{}", operation->wanted.offset,
        operation->wanted.offset + operation->wanted.size_bytes - 1);
  }
  message += ": " + why.message();
  if (status == 401 || status == 403) {
    message += "; " + object.location.if_denied;
  }
  if (operation->num_attempts > 1) {
    message += fmt::format(" ({} attempts)", operation->num_attempts);
  }
  Finish(operation, Status(why.code(), std::move(message)));
}

void ObjectClient::State::Take(Operation* operation, const ResponseHead& head) {
  RemoteObject& object = objects_[operation->object];
  if (!SameOrigin(operation->url, object.location.url)) {
    object.redirected = operation->url;
  }
  if (!operation->wanted.IsFirstLook()) return Finish(operation, {});
  const Status status = TakeFirstLook(*operation, head);
  if (!status.ok()) return Fail(operation, status, 0);
  Finish(operation, {});
}

Status ObjectClient::State::TakeFirstLook(const Operation& operation,
                                          const ResponseHead& head) {
  RemoteObject& object = objects_[operation.object];
  ASSIGN_OR_RETURN(const FirstLook look, ReadFirstLook(head));
  const bool from_origin = SameOrigin(operation.url, object.location.url);
  if (from_origin && object.location.has_checksum_header &&
      IsSha256(head.linked_etag)) {
    object.info.sha256 = head.linked_etag;
  }
  object.info.size_bytes = look.size_bytes;
  object.info.etag = look.validators.etag;
  object.info.accepts_ranges = look.accepts_ranges;
  object.validators = look.validators;
  return {};
}

void ObjectClient::State::ExpireSlow() {
  const int64_t now = clock_.NowMs();
  for (size_t i = operations_.size(); i-- > 0;) {
    Operation* operation = operations_[i].get();
    if (now >= operation->deadline_ms) {
      StopTransfer(operation);
      const Status& last = operation->last_failure;
      Fail(operation,
           Status(Code::kUnavailable,
                  fmt::format("not done within {} ms{}{}", options_.timeout_ms,
                              last.ok() ? "" : "; before: ", last.message())),
           0);
    } else if (operation->transfer && now >= operation->window_end_ms) {
      const uint64_t received = operation->transfer->received_bytes();
      const uint64_t in_window = received - operation->window_begin_bytes;
      operation->window_begin_bytes = received;
      operation->window_end_ms = now + options_.low_speed_window_ms;
      if (in_window >= options_.low_speed_bytes) continue;
      StopTransfer(operation);
      Retry(operation,
            Status(Code::kUnavailable,
                   fmt::format("the server stalled: {} bytes in {} ms",
                               in_window, options_.low_speed_window_ms)),
            std::nullopt);
    }
  }
}

void ObjectClient::State::Finish(Operation* operation, Status status) {
  if (!status.ok()) ++counters_.num_failures;
  if (operation->wanted.IsFirstLook()) {
    opened_ = std::move(status);
  } else {
    if (status.ok()) counters_.read_bytes += operation->wanted.size_bytes;
    finished_.push_back({operation->tag, std::move(status)});
    --num_reads_;
  }
  std::erase_if(operations_,
                [&](const auto& o) { return o.get() == operation; });
}

void ObjectClient::State::StopTransfer(Operation* operation) {
  if (!operation->transfer) return;
  loop_.Stop(operation->transfer.get());
  idle_transfers_.push_back(std::move(operation->transfer));
}

std::unique_ptr<Transfer> ObjectClient::State::TakeTransfer() {
  if (idle_transfers_.empty()) {
    return std::make_unique<Transfer>(
        TransferSettings{options_.connect_timeout_ms, settings_.ca_file});
  }
  auto transfer = std::move(idle_transfers_.back());
  idle_transfers_.pop_back();
  return transfer;
}

// ---- The public face.

ObjectClient::ObjectClient(ObjectSettings settings, ObjectClientOptions options)
    : state_(std::make_unique<State>(std::move(settings), options)) {}
ObjectClient::~ObjectClient() = default;

Result<ObjectId> ObjectClient::Open(const std::string& url) {
  return state_->Open(url);
}
const ObjectInfo& ObjectClient::Info(ObjectId object) const {
  return state_->Info(object);
}
size_t ObjectClient::Submit(std::span<const RangeRequest> requests) {
  return state_->Submit(requests);
}
size_t ObjectClient::Wait(size_t min_done, std::span<RangeDone> done) {
  return state_->Wait(min_done, done);
}
void ObjectClient::Cancel(uint64_t tag) { state_->Cancel(tag); }
void ObjectClient::Interrupt() { state_->Interrupt(); }
size_t ObjectClient::num_in_flight() const { return state_->num_in_flight(); }
const ObjectCounters& ObjectClient::counters() const {
  return state_->counters();
}

}  // namespace muster::io

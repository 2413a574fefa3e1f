#include "io/object/object_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "io/object/object_client_state.h"

namespace muster::io {
namespace {

// The same host, reached as the operator wrote it or by https instead.
bool IsOperatorsHost(const HttpUrl& origin, const HttpUrl& url) {
  const bool upgraded = !origin.tls && url.tls && origin.host == url.host &&
                        origin.port == 80 && url.port == 443;
  return upgraded || SameOrigin(origin, url);
}

}  // namespace

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

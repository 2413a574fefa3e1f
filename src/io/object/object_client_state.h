// What is behind an ObjectClient: reads in the order in which they were asked
// for, each through redirects and attempts. object_client.cc has the turn that
// moves them on, object_exchange.cc what an answer means.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "io/object/backoff.h"
#include "io/object/object_client.h"
#include "io/object/object_location.h"
#include "io/object/transfer_loop.h"

namespace muster::io {

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

}  // namespace muster::io

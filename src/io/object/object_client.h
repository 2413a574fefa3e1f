// Reads ranges of remote objects, many at once: the cold tier's transport.
// http(s)://, s3://, az:// and hf:// URLs; docs/object-storage.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "io/object/object_clock.h"
#include "io/object/object_settings.h"

namespace muster::io {

// An object that a client has opened; of that client only.
struct ObjectId {
  size_t index = 0;
};

// What an object was when it was opened. A read of it fails once it is another.
struct ObjectInfo {
  std::string name;  // for people: its URL, without secrets
  uint64_t size_bytes = 0;
  std::string etag;             // as the server wrote it; empty: none
  std::string sha256;           // hexadecimal; empty: the server did not tell
  bool accepts_ranges = false;  // else only the whole of it can be read
};

struct RangeRequest {
  ObjectId object;
  uint64_t offset = 0;       // bytes
  std::span<std::byte> dst;  // not empty; stays valid until its RangeDone
  uint64_t tag = 0;          // returned unchanged in RangeDone
};

struct RangeDone {
  uint64_t tag = 0;
  Status status;  // unless ok, what dst holds is undefined
};

struct ObjectClientOptions {
  size_t max_in_flight = 256;   // requests that Submit has taken
  size_t max_connections = 16;  // of them, those on the network; also per host
  int max_attempts = 6;
  int64_t first_delay_ms = 200;  // before the second attempt; then doubled
  int64_t max_delay_ms = 10'000;
  int64_t timeout_ms = 300'000;  // of one read or Open, all attempts together
  int64_t connect_timeout_ms = 10'000;
  // An attempt that gets fewer bytes than this in such a window is over.
  int64_t low_speed_window_ms = 15'000;
  uint64_t low_speed_bytes = 4096;
  int max_redirects = 5;
  // Lets redirects, and names the operator wrote, lead to any address.
  bool allow_private_addresses = false;
  uint64_t seed = 0;             // of the jitter
  ObjectClock* clock = nullptr;  // null: the system's; outlives the client
};

// Since the client was made.
struct ObjectCounters {
  uint64_t num_exchanges = 0;  // HTTP requests, redirects and retries included
  uint64_t num_retries = 0;
  uint64_t num_redirects = 0;
  uint64_t num_failures = 0;  // reads and Opens that ended without success
  uint64_t read_bytes = 0;    // of reads that succeeded
};

// All methods but Interrupt belong to one thread; nothing happens but within
// them. Destroying it ends what is in flight: dst is not written any more.
class ObjectClient {
 public:
  ObjectClient(ObjectSettings settings, ObjectClientOptions options);
  ~ObjectClient();
  ObjectClient(const ObjectClient&) = delete;
  ObjectClient& operator=(const ObjectClient&) = delete;

  // Asks for the object's first byte, and so learns what there is to know.
  // Blocks, while reads in flight go on. Fails with kNotFound; with
  // kInvalidArgument on a URL, a setting or an address that will not do; with
  // kIoError when the server refuses (401, 403: the message says what to set);
  // with kUnsupported when it does not tell the size; with kUnavailable.
  Result<ObjectId> Open(const std::string& url);
  // REQUIRES: `object` is from Open of this client. Valid until the next Open.
  const ObjectInfo& Info(ObjectId object) const;

  // Starts a prefix of `requests` and returns its length: shorter when
  // max_in_flight would be exceeded. Each started request yields exactly one
  // RangeDone. Never blocks. The range must lie within the object.
  // A read fails with kCorrupt when the object has changed or the server sends
  // other bytes than were asked for, kUnsupported when it does not know ranges,
  // kUnavailable past the deadline or the attempts.
  [[nodiscard]] size_t Submit(std::span<const RangeRequest> requests);

  // Waits until `min_done` reads have ended or Interrupt is called, then
  // returns as many as fit; 0: moves what can be moved, and looks.
  // REQUIRES: min_done <= num_in_flight(), min_done <= done.size().
  size_t Wait(size_t min_done, std::span<RangeDone> done);

  // Ends those reads with `tag`; each yields its RangeDone with kCancelled.
  void Cancel(uint64_t tag);

  // Makes the current or the next Wait return. Thread-safe.
  void Interrupt();

  // Reads that were started and have not been returned by Wait.
  size_t num_in_flight() const;
  const ObjectCounters& counters() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace muster::io

// Batched, asynchronous reads. One engine per device; all methods are called by
// the one thread that owns the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace muster::io {

enum class ReadStatus : uint8_t { kOk, kShort, kFailed };

struct ReadRequest {
  int fd = -1;
  uint64_t offset = 0;       // bytes; multiple of Alignment()
  std::span<std::byte> dst;  // stays valid until its ReadDone arrives
  uint64_t tag = 0;          // returned unchanged in ReadDone
};

struct ReadDone {
  uint64_t tag = 0;
  ReadStatus status = ReadStatus::kOk;
  size_t size_bytes = 0;  // that were read, also of a short read
  int error = 0;          // errno of a failed one
};

class ReadEngine {
 public:
  virtual ~ReadEngine() = default;

  // For people: "io_uring, depth 32".
  virtual std::string Name() const = 0;

  // Offsets, sizes and addresses must be multiples of this many bytes.
  virtual size_t Alignment() const = 0;

  // Starts a prefix of `requests` and returns its length. Each started request
  // yields exactly one ReadDone, also when it fails. Never blocks.
  [[nodiscard]] virtual size_t Submit(
      std::span<const ReadRequest> requests) = 0;

  // Waits until `min_done` reads have ended, then returns as many as fit; 0: a
  // look. REQUIRES: min_done <= number in flight, min_done <= done.size().
  virtual size_t Wait(size_t min_done, std::span<ReadDone> done) = 0;

  // Reads that were started and have not been returned by Wait.
  virtual size_t num_in_flight() const = 0;
};

}  // namespace muster::io

// Batched, asynchronous reads. One engine per device; all methods are called by
// the one thread that owns the engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace muster::io {

// Offsets, sizes and addresses of reads are multiples of this many bytes: what
// O_DIRECT asks for on every disk in use. DirectFile refuses those that ask for
// more.
inline constexpr size_t kReadAlignment = 4096;

enum class ReadStatus : uint8_t {
  kOk,     // every byte of dst
  kShort,  // the file ends before: the first size_bytes of dst are good
  kFailed
};

// The last page of a file whose size is no multiple of Alignment() is read as a
// whole page, which comes back as kShort with the bytes that exist: a caller
// compares size_bytes with what it needs, not the status with kOk.
struct ReadRequest {
  int fd = -1;
  uint64_t offset = 0;       // bytes; multiple of Alignment()
  std::span<std::byte> dst;  // not empty; valid until its ReadDone arrives
  uint64_t tag = 0;          // returned unchanged in ReadDone
};

struct ReadDone {
  uint64_t tag = 0;
  ReadStatus status = ReadStatus::kOk;
  size_t size_bytes = 0;  // that were read; 0 of a failed one
  int error = 0;          // errno of a failed one
};

// An engine that is destroyed first waits for the reads that the kernel has:
// what they write to must live longer than the engine, or be idle.
class ReadEngine {
 public:
  virtual ~ReadEngine() = default;

  // For people: "io_uring, depth 32".
  virtual std::string Name() const = 0;

  // Offsets, sizes and addresses must be multiples of this many bytes.
  virtual size_t Alignment() const { return kReadAlignment; }

  // Starts a prefix of `requests` and returns its length: less than all when
  // enough are in flight. Each started request yields exactly one ReadDone,
  // also when it fails; those of one engine start in order and end in any.
  // Never blocks.
  [[nodiscard]] virtual size_t Submit(
      std::span<const ReadRequest> requests) = 0;

  // Waits until `min_done` reads have ended, then returns as many as fit; 0: a
  // look, without a system call where nothing has to be started.
  // REQUIRES: min_done <= num_in_flight(), min_done <= done.size().
  virtual size_t Wait(size_t min_done, std::span<ReadDone> done) = 0;

  // Reads that were started and have not been returned by Wait.
  virtual size_t num_in_flight() const = 0;
};

}  // namespace muster::io

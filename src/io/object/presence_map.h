// Which blocks of a staged file are there, as the disk is told: a head that
// names the object, then a bit per block. A bit is set only for a block that
// was flushed before, and cleared before the block is given up, so that after a
// power failure every bit that is set is true, whichever writes reached the
// disk. docs/tiers.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"

namespace muster::io {

// An object whose bytes are the same whenever these are.
struct StagedIdentity {
  std::string name;  // without secrets
  uint64_t size_bytes = 0;
  std::string etag;
  std::string sha256;

  // Without either, nothing says that the object is still the same.
  bool lasts() const;
  bool operator==(const StagedIdentity&) const = default;
};

inline constexpr uint64_t kStagedBlockBytes = 16 << 10;

inline uint64_t NumStagedBlocks(uint64_t size_bytes) {
  return size_bytes / kStagedBlockBytes + (size_bytes % kStagedBlockBytes != 0);
}

// One thread at a time; one per path in all processes (a lock on the file).
class PresenceMap {
 public:
  // Reads the map at `path` when it is of `identity` and whole; else begins
  // anew, and clear() is true: what is staged must not be believed. Fails with
  // kUnavailable when another process has it, kResourceExhausted, kIoError.
  static Result<std::unique_ptr<PresenceMap>> Open(
      const std::string& path, const StagedIdentity& identity);
  ~PresenceMap();
  PresenceMap(const PresenceMap&) = delete;
  PresenceMap& operator=(const PresenceMap&) = delete;

  bool clear() const { return clear_; }
  bool Has(uint64_t block) const {
    return (bits_[block / 8] >> block % 8 & 1) != 0;
  }
  // In memory, until Write.
  void Set(uint64_t block, bool present);
  // What changed goes to the file; Sync makes it last.
  Status Write();
  Status Sync();

 private:
  PresenceMap(std::string path, int fd, uint64_t num_blocks)
      : path_(std::move(path)), fd_(fd), bits_((num_blocks + 7) / 8) {}
  Status Begin(const std::string& head);
  bool Read(const std::string& head);
  Status Error(const char* what) const;

  const std::string path_;
  const int fd_;
  uint64_t head_bytes_ = 0;
  bool clear_ = true;
  std::vector<uint8_t> bits_;
  // The bytes of bits_ that changed, [begin, end).
  uint64_t changed_begin_ = 0;
  uint64_t changed_end_ = 0;
};

// A folder's name for the object: hexadecimal.
std::string StageNameOf(const std::string& url, const StagedIdentity& identity);

}  // namespace muster::io

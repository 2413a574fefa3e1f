// A file that is written at any offset, and what makes writing last.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::io {

// Writes are thread-safe; moving is not. Errors are kIoError, or
// kResourceExhausted on a full disk, and name the file.
class OutputFile {
 public:
  // Opens for writing; makes the file when there is none, and keeps what is in
  // it.
  static Result<OutputFile> Open(const std::string& path);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;
  ~OutputFile();

  const std::string& path() const { return path_; }

  // All of `bytes`. Blocks.
  Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) const;
  // Cuts, or extends with zeros.
  Status Resize(uint64_t size_bytes) const;
  // False when another process holds the lock. Kept until the file closes.
  bool TryLock() const;
  // Waits until what was written would survive a power cut.
  Status Sync() const;

 private:
  OutputFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_ = -1;
};

// Makes names in a folder last: after creating or renaming files in it.
Status SyncFolder(const std::string& folder);

// The file holds `text` or what it held before, whatever happens: writes beside
// it, syncs, renames.
Status WriteFileAtomically(const std::string& path, std::string_view text);

}  // namespace muster::io

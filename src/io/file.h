// A file that is read at any offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"

namespace muster::io {

class RemoteFile;

// Read-only. Reads are thread-safe; moving is not.
class File {
 public:
  // Fails with kNotFound or kIoError, and kInvalidArgument on a folder. A URL
  // is opened as remote_files.h says: its local file, which reads fill.
  //   flags: O_DIRECT or none
  static Result<File> Open(const std::string& path, int flags = 0);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  ~File();

  const std::string& path() const { return path_; }  // for people, if a URL
  int fd() const { return fd_; }  // open as long as this object is
  uint64_t size_bytes() const { return size_bytes_; }

  // Null: a local file. Else what is read through fd() must be held.
  RemoteFile* remote() const { return remote_.get(); }

  // Reads will come from anywhere: the system need not read ahead.
  void AdviseRandom();

  // Fills `dst` from `offset`. Blocks. Fails with kIoError, naming the file,
  // the offset and how many bytes were there, when the file ends before.
  Status ReadAt(uint64_t offset, std::span<std::byte> dst) const;

 private:
  File(std::string path, int fd, uint64_t size_bytes)
      : path_(std::move(path)), fd_(fd), size_bytes_(size_bytes) {}

  Status ReadLocally(uint64_t offset, std::span<std::byte> dst) const;

  std::string path_;
  int fd_ = -1;
  uint64_t size_bytes_ = 0;
  std::shared_ptr<RemoteFile> remote_;  // shared: by all who opened the URL
};

// A whole file as text. Fails with kInvalidArgument when it is larger than
// `max_bytes`.
Result<std::string> ReadTextFile(const std::string& path, uint64_t max_bytes);

}  // namespace muster::io

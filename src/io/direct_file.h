// A file whose reads pass the page cache by, where its file system allows it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.h"
#include "io/file.h"

namespace muster::io {

// Read-only; thread-safe but for moving. For a ReadEngine, which reads whole
// pages: the last one comes back short when the file ends within it.
class DirectFile {
 public:
  // With O_DIRECT, or buffered where that is refused: is_direct() tells, and
  // why_not() is for the log. Reads one page to know. Fails as File::Open does.
  static Result<DirectFile> Open(const std::string& path);

  // Through the page cache, because the caller measured that it is faster.
  static Result<DirectFile> OpenBuffered(const std::string& path);

  int fd() const { return file_.fd(); }  // open as long as this object is
  const std::string& path() const { return file_.path(); }
  uint64_t size_bytes() const { return file_.size_bytes(); }
  RemoteFile* remote() const { return file_.remote(); }  // see File
  bool is_direct() const { return why_not_.empty(); }
  const std::string& why_not() const { return why_not_; }  // empty: direct

 private:
  DirectFile(File file, std::string why_not)
      : file_(std::move(file)), why_not_(std::move(why_not)) {}

  File file_;
  std::string why_not_;
};

}  // namespace muster::io

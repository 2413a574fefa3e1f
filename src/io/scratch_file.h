// A file of random bytes on the disk in question, deleted at the end.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace muster::io {

class ScratchFile {
 public:
  // On the disk, not in its cache, when this returns. Fails with kIoError, also
  // when the folder is too full. size_bytes: multiple of 2 MiB
  static Result<ScratchFile> Create(const std::string& folder,
                                    uint64_t size_bytes);

  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&& other) noexcept;
  ~ScratchFile();

  const std::string& path() const { return path_; }

 private:
  explicit ScratchFile(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: moved away
};

}  // namespace muster::io

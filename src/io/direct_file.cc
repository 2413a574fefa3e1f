#include "io/direct_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/read_engine.h"
#include "tensor/aligned_buffer.h"

namespace muster::io {
namespace {

// What the file system says it needs; 0: it does not say.
size_t AlignmentOf(int fd) {
#ifdef STATX_DIOALIGN
  struct statx info {};
  if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 &&
      (info.stx_mask & STATX_DIOALIGN) != 0) {
    return std::max(info.stx_dio_offset_align, info.stx_dio_mem_align);
  }
#endif
  return 0;
}

// Some file systems take the flag and refuse the reads. Empty: they work.
std::string WhyRefused(int fd) {
  const size_t alignment = AlignmentOf(fd);
  if (alignment > kReadAlignment) {
    return fmt::format("direct reads here come in units of {} bytes",
                       alignment);
  }
  AlignedBuffer page(kReadAlignment);
  ssize_t n = 0;
  do {
    n = pread(fd, page.data(), page.size_bytes(), 0);
  } while (n < 0 && errno == EINTR);
  // Any other trouble is not about O_DIRECT: the reader will meet it.
  return n < 0 && errno == EINVAL
             ? fmt::format("a direct read: {}", std::strerror(errno))
             : "";
}

}  // namespace

Result<DirectFile> DirectFile::Open(const std::string& path) {
  std::string why_not;
  if (auto file = File::Open(path, O_DIRECT); !file.ok()) {
    why_not = file.status().message();
  } else if (why_not = WhyRefused(file->fd()); why_not.empty()) {
    return DirectFile(std::move(*file), "");
  }
  ASSIGN_OR_RETURN(File file, File::Open(path));
  return DirectFile(std::move(file), std::move(why_not));
}

Result<DirectFile> DirectFile::OpenBuffered(const std::string& path) {
  ASSIGN_OR_RETURN(File file, File::Open(path));
  return DirectFile(std::move(file), "opened to be read through the cache");
}

}  // namespace muster::io

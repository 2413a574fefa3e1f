#include "io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "io/remote_files.h"

namespace muster::io {

Result<File> File::Open(const std::string& path, int flags) {
  if (IsRemotePath(path)) {
    ASSIGN_OR_RETURN(auto remote, OpenRemoteFile(path));
    ASSIGN_OR_RETURN(File file, Open(remote->local_path(), flags));
    file.path_ = remote->name();
    file.remote_ = std::move(remote);
    return file;
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | flags);
  if (fd < 0) {
    const Code code = errno == ENOENT ? Code::kNotFound : Code::kIoError;
    return Status(code, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  File file(path, fd, 0);
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    return IoError(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument(fmt::format("{}: not a regular file", path));
  }
  file.size_bytes_ = static_cast<uint64_t>(info.st_size);
  return file;
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      size_bytes_(other.size_bytes_),
      remote_(std::move(other.remote_)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(remote_, other.remote_);
  return *this;
}

File::~File() {
  if (fd_ >= 0) close(fd_);
}

void File::AdviseRandom() { posix_fadvise(fd_, 0, 0, POSIX_FADV_RANDOM); }

Status File::ReadAt(uint64_t offset, std::span<std::byte> dst) const {
  const bool within =
      offset <= size_bytes_ && dst.size() <= size_bytes_ - offset;
  if (remote_ == nullptr || !within || dst.empty()) {
    return ReadLocally(offset, dst);
  }
  ASSIGN_OR_RETURN(const RangeHold hold,
                   RangeHold::Take({remote_.get(), offset, dst.size()}));
  return ReadLocally(offset, dst);
}

Status File::ReadLocally(uint64_t offset, std::span<std::byte> dst) const {
  size_t done = 0;
  while (done < dst.size()) {
    const ssize_t n = pread(fd_, dst.data() + done, dst.size() - done,
                            static_cast<off_t>(offset + done));
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n == 0) {
      return IoError(fmt::format(
          "{}: the file ends at {} of the {} bytes wanted at offset {}", path_,
          done, dst.size(), offset));
    } else if (errno != EINTR) {
      return IoError(fmt::format("{}: reading at offset {}: {}", path_,
                                 offset + done, std::strerror(errno)));
    }
  }
  return {};
}

Result<std::string> ReadTextFile(const std::string& path, uint64_t max_bytes) {
  ASSIGN_OR_RETURN(const File file, File::Open(path));
  if (file.size_bytes() > max_bytes) {
    return InvalidArgument(fmt::format("{}: {} bytes, expected at most {}",
                                       path, file.size_bytes(), max_bytes));
  }
  std::string text(file.size_bytes(), '\0');
  RETURN_IF_ERROR(file.ReadAt(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace muster::io

#include "io/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

namespace muster::io {
namespace {

Status ErrnoOf(const std::string& path, const char* what) {
  const Code code = errno == ENOSPC || errno == EDQUOT
                        ? Code::kResourceExhausted
                        : Code::kIoError;
  return Status(code,
                fmt::format("{}: {}: {}", path, what, std::strerror(errno)));
}

}  // namespace

Result<OutputFile> OutputFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoOf(path, "opening for writing");
  return OutputFile(path, fd);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  return *this;
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) close(fd_);
}

Status OutputFile::WriteAt(uint64_t offset,
                           std::span<const std::byte> bytes) const {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n = pwrite(fd_, bytes.data() + done, bytes.size() - done,
                             static_cast<off_t>(offset + done));
    if (n > 0) {
      done += static_cast<size_t>(n);
    } else if (n == 0) {
      return IoError(fmt::format("{}: nothing was written at offset {}", path_,
                                 offset + done));
    } else if (errno != EINTR) {
      return ErrnoOf(path_, "writing");
    }
  }
  return {};
}

Status OutputFile::Resize(uint64_t size_bytes) const {
  if (ftruncate(fd_, static_cast<off_t>(size_bytes)) == 0) return {};
  return ErrnoOf(path_, "setting the size");
}

bool OutputFile::TryLock() const { return flock(fd_, LOCK_EX | LOCK_NB) == 0; }

Status OutputFile::Sync() const {
  return fdatasync(fd_) == 0 ? Status() : ErrnoOf(path_, "syncing");
}

Status SyncFolder(const std::string& folder) {
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoOf(folder, "opening");
  // Some file systems have nothing to sync in a folder, and say so.
  const bool synced = fsync(fd) == 0 || errno == EINVAL;
  const Status status = synced ? Status() : ErrnoOf(folder, "syncing");
  close(fd);
  return status;
}

Status WriteFileAtomically(const std::string& path, std::string_view text) {
  const std::string beside = path + ".tmp";
  {
    ASSIGN_OR_RETURN(const auto file, OutputFile::Open(beside));
    RETURN_IF_ERROR(file.Resize(0));
    RETURN_IF_ERROR(file.WriteAt(0, std::as_bytes(std::span(text))));
    RETURN_IF_ERROR(file.Sync());
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) {
    return ErrnoOf(path, "renaming into place");
  }
  const std::string folder = std::filesystem::path(path).parent_path();
  return SyncFolder(folder.empty() ? "." : folder);
}

}  // namespace muster::io

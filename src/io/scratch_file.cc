#include "io/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <utility>
#include <vector>

#include "base/check.h"

namespace muster::io {
namespace {

constexpr size_t kPieceBytes = size_t{2} << 20;

Status Trouble(const std::string& what) {
  return IoError(fmt::format("{}: {}", what, std::strerror(errno)));
}

// Random: some disks store zeros nowhere.
Status Fill(int fd, const std::string& path, uint64_t size_bytes) {
  std::mt19937_64 random(1);
  std::vector<uint64_t> piece(kPieceBytes / sizeof(uint64_t));
  for (uint64_t& word : piece) word = random();
  for (uint64_t done = 0; done < size_bytes; done += kPieceBytes) {
    piece[0] = done;  // some store equal pieces once
    const ssize_t n = write(fd, piece.data(), kPieceBytes);
    if (n < 0) return Trouble(path);
    if (n < static_cast<ssize_t>(kPieceBytes)) {
      return IoError(fmt::format("{}: the disk is full", path));
    }
  }
  if (fsync(fd) != 0) return Trouble(path);
  posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  return {};
}

}  // namespace

Result<ScratchFile> ScratchFile::Create(const std::string& folder,
                                        uint64_t size_bytes) {
  CHECK_EQ(size_bytes % kPieceBytes, 0u);
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error) return IoError(fmt::format("{}: {}", folder, error.message()));
  if (space.available < 2 * size_bytes) {
    return IoError(fmt::format("{}: too full to measure the disk", folder));
  }
  std::string path = folder + "/muster-scratch-XXXXXX";
  const int fd = mkstemp(path.data());
  if (fd < 0) return Trouble(folder);
  ScratchFile file(path);
  const Status status = Fill(fd, path, size_bytes);
  close(fd);
  RETURN_IF_ERROR(status);
  return file;
}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : path_(std::exchange(other.path_, "")) {}

ScratchFile& ScratchFile::operator=(ScratchFile&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

ScratchFile::~ScratchFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

}  // namespace muster::io

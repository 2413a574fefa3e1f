#include "cli/disk_speed.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <random>

#include "tensor/aligned_buffer.h"

namespace muster::cli {
namespace {

constexpr size_t kFileBytes = size_t{256} << 20;
constexpr size_t kPieceBytes = size_t{2} << 20;

// Closes and deletes on every way out.
struct TemporaryFile {
  std::string path;
  int fd = -1;
  ~TemporaryFile() {
    if (fd < 0) return;
    close(fd);
    unlink(path.c_str());
  }
};

Status Trouble(const std::string& what) {
  return IoError(fmt::format("{}: {}", what, std::strerror(errno)));
}

}  // namespace

Result<DiskSpeed> MeasureDisk(const std::string& folder) {
  DiskSpeed speed;
  std::error_code error;
  const auto space = std::filesystem::space(folder, error);
  if (error) return IoError(fmt::format("{}: {}", folder, error.message()));
  speed.free_bytes = space.available;
  if (space.available < 2 * kFileBytes) {
    return IoError(fmt::format("{}: too full to measure the disk", folder));
  }
  TemporaryFile file{.path = folder + "/muster-doctor-XXXXXX"};
  file.fd = mkstemp(file.path.data());
  if (file.fd < 0) return Trouble(folder);
  AlignedBuffer piece(kPieceBytes);
  std::mt19937_64 random(1);
  for (size_t i = 0; i < kPieceBytes; i += 8) {
    const uint64_t word = random();
    std::memcpy(piece.data() + i, &word, 8);
  }
  for (size_t done = 0; done < kFileBytes; done += kPieceBytes) {
    if (write(file.fd, piece.data(), kPieceBytes) !=
        static_cast<ssize_t>(kPieceBytes)) {
      return Trouble(file.path);
    }
  }
  if (fsync(file.fd) != 0) return Trouble(file.path);
  posix_fadvise(file.fd, 0, 0, POSIX_FADV_DONTNEED);
  const int direct = open(file.path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC);
  speed.direct_io = direct >= 0;
  const int fd = speed.direct_io ? direct : file.fd;
  const auto start = std::chrono::steady_clock::now();
  for (size_t done = 0; done < kFileBytes; done += kPieceBytes) {
    if (pread(fd, piece.data(), kPieceBytes, static_cast<off_t>(done)) !=
        static_cast<ssize_t>(kPieceBytes)) {
      if (direct >= 0) close(direct);
      return Trouble(file.path);
    }
  }
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  if (direct >= 0) close(direct);
  speed.read_bytes_per_second = kFileBytes / spent.count();
  return speed;
}

}  // namespace muster::cli

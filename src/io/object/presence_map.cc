#include "io/object/presence_map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "io/object/ascii.h"
#include "io/object/digest.h"

namespace muster::io {
namespace {

bool WriteAll(int fd, uint64_t offset, const void* from, size_t size_bytes) {
  const auto* bytes = static_cast<const std::byte*>(from);
  for (size_t done = 0; done < size_bytes;) {
    const ssize_t n = pwrite(fd, bytes + done, size_bytes - done,
                             static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

bool ReadAll(int fd, uint64_t offset, void* to, size_t size_bytes) {
  auto* bytes = static_cast<std::byte*>(to);
  for (size_t done = 0; done < size_bytes;) {
    const ssize_t n = pread(fd, bytes + done, size_bytes - done,
                            static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

// One line of a head: nothing in it may end it.
std::string OneLine(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !IsPrintable(c); }, '?');
  return text;
}

std::string HeadOf(const StagedIdentity& identity) {
  return fmt::format(
      "muster stage 1\nobject {}\nsize {}\nblock {}\netag {}\nsha256 {}\n\n",
      OneLine(identity.name), identity.size_bytes, kStagedBlockBytes,
      OneLine(identity.etag), OneLine(identity.sha256));
}

// A signature changes from day to day; the object is named by the rest.
std::string WithoutSignature(const std::string& url) {
  const size_t query = url.find('?');
  if (query == url.npos) return url;
  const std::string fields = "&" + Lower(url.substr(query + 1));
  const bool is_signed = fields.find("&sig=") != fields.npos ||
                         fields.find("&x-amz-signature=") != fields.npos;
  return is_signed ? url.substr(0, query) : url;
}

// Not one that another process removed between opening and locking.
bool IsFileAt(int fd, const std::string& path) {
  struct stat open_file {};
  struct stat named {};
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

}  // namespace

bool StagedIdentity::lasts() const {
  return !sha256.empty() || (!etag.empty() && !etag.starts_with("W/"));
}

std::string StageNameOf(const std::string& url,
                        const StagedIdentity& identity) {
  const Sha256Digest digest =
      Sha256Of(fmt::format("{}\n{}", WithoutSignature(url), HeadOf(identity)));
  return Hex(std::span(digest).first(16));
}

Result<std::unique_ptr<PresenceMap>> PresenceMap::Open(
    const std::string& path, const StagedIdentity& identity) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  std::unique_ptr<PresenceMap> map(
      new PresenceMap(path, fd, NumStagedBlocks(identity.size_bytes)));
  if (fd < 0) return map->Error("opening");
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 || !IsFileAt(fd, path)) {
    return Status(
        Code::kUnavailable,
        fmt::format("{}: another process stages {} here; wait for it, end it "
                    "or take another folder with --stage",
                    path, identity.name));
  }
  const std::string head = HeadOf(identity);
  map->head_bytes_ = head.size();
  if (identity.lasts() && map->Read(head)) {
    map->clear_ = false;
    futimens(fd, nullptr);  // when it was used last
  } else {
    RETURN_IF_ERROR(map->Begin(head));
  }
  return map;
}

PresenceMap::~PresenceMap() {
  if (fd_ >= 0) close(fd_);
}

bool PresenceMap::Read(const std::string& head) {
  struct stat info {};
  std::string found(head.size(), '\0');
  return fstat(fd_, &info) == 0 &&
         static_cast<uint64_t>(info.st_size) == head.size() + bits_.size() &&
         ReadAll(fd_, 0, found.data(), found.size()) && found == head &&
         ReadAll(fd_, head_bytes_, bits_.data(), bits_.size());
}

// The head comes last: a map without one is not believed.
Status PresenceMap::Begin(const std::string& head) {
  std::fill(bits_.begin(), bits_.end(), 0);
  const bool ok =
      ftruncate(fd_, 0) == 0 && fsync(fd_) == 0 &&
      ftruncate(fd_, static_cast<off_t>(head.size() + bits_.size())) == 0 &&
      WriteAll(fd_, 0, head.data(), head.size());
  return ok ? Status() : Error("writing");
}

void PresenceMap::Set(uint64_t block, bool present) {
  if (Has(block) == present) return;
  const uint64_t byte = block / 8;
  bits_[byte] = static_cast<uint8_t>(bits_[byte] ^ 1u << block % 8);
  if (changed_begin_ == changed_end_) {
    changed_begin_ = byte;
    changed_end_ = byte + 1;
  } else {
    changed_begin_ = std::min(changed_begin_, byte);
    changed_end_ = std::max(changed_end_, byte + 1);
  }
}

Status PresenceMap::Write() {
  if (changed_begin_ == changed_end_) return {};
  if (!WriteAll(fd_, head_bytes_ + changed_begin_, &bits_[changed_begin_],
                changed_end_ - changed_begin_)) {
    return Error("writing");
  }
  changed_begin_ = changed_end_ = 0;
  return {};
}

Status PresenceMap::Sync() {
  return fdatasync(fd_) == 0 ? Status() : Error("flushing");
}

Status PresenceMap::Error(const char* what) const {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  return Status(full ? Code::kResourceExhausted : Code::kIoError,
                fmt::format("{}: {}: {}", path_, what, std::strerror(errno)));
}

}  // namespace muster::io

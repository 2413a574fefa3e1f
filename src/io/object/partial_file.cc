#include "io/object/partial_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/units.h"
#include "io/file.h"

namespace muster::io {
namespace {

constexpr uint64_t kMaxJournalBytes = 256 << 20;

int OpenForWriting(const std::string& path, int flags) {
  return open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0644);
}

bool WriteAll(int fd, uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n =
        pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return true;
}

bool Append(int fd, const std::string& text) {
  const off_t end = lseek(fd, 0, SEEK_END);
  return end >= 0 && WriteAll(fd, static_cast<uint64_t>(end),
                              std::as_bytes(std::span(text)));
}

// A rename or a new file is lasting once its folder is flushed.
bool SyncFolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == path.npos ? "." : path.substr(0, slash + 1);
  const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = fsync(fd) == 0;
  close(fd);
  return ok;
}

bool IsFileAt(int fd, const std::string& path) {
  struct stat open_file {
  }, named{};
  return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 &&
         open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

}  // namespace

PartialFile::PartialFile(const std::string& path, DownloadPlan plan)
    : path_(path),
      partial_path_(path + ".partial"),
      journal_path_(path + ".partial.journal"),
      plan_(std::move(plan)),
      has_part_(plan_.NumParts()) {}

PartialFile::~PartialFile() {
  if (journal_ >= 0) close(journal_);
  if (file_ >= 0) close(file_);
}

Result<std::unique_ptr<PartialFile>> PartialFile::Open(const std::string& path,
                                                       DownloadPlan plan) {
  CHECK_GT(plan.part_bytes, 0u);
  std::unique_ptr<PartialFile> file(new PartialFile(path, std::move(plan)));
  RETURN_IF_ERROR(file->Lock());
  RETURN_IF_ERROR(file->CheckSpace());
  if (!file->Resume().ok()) RETURN_IF_ERROR(file->BeginAnew());
  RETURN_IF_ERROR(file->ReserveSpace());
  return file;
}

Status PartialFile::Lock() {
  // Again when the holder of the lock renamed or removed it meanwhile.
  do {
    if (file_ >= 0) close(file_);
    file_ = OpenForWriting(partial_path_, 0);
    if (file_ < 0) return Error("opening");
    if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
      return Status(Code::kUnavailable,
                    fmt::format("{}: another process is downloading it; wait "
                                "for it or end it",
                                partial_path_));
    }
  } while (!IsFileAt(file_, partial_path_));
  return {};
}

Status PartialFile::Resume() {
  ASSIGN_OR_RETURN(const std::string text,
                   ReadTextFile(journal_path_, kMaxJournalBytes));
  ASSIGN_OR_RETURN(DownloadJournal journal, ParseDownloadJournal(text));
  struct stat info {};
  const bool fits = plan_.CanResume(journal.plan) && fstat(file_, &info) == 0 &&
                    static_cast<uint64_t>(info.st_size) == plan_.size_bytes;
  if (!fits) return Corrupt("of other bytes");
  journal_ = OpenForWriting(journal_path_, 0);
  if (journal_ < 0) return Error("opening the journal of");
  // A line that was torn goes, so that the next one begins a line.
  if (ftruncate(journal_, static_cast<off_t>(text.rfind('\n') + 1)) != 0) {
    return Error("mending the journal of");
  }
  has_part_ = std::move(journal.has_part);
  return {};
}

Status PartialFile::BeginAnew() {
  if (journal_ >= 0) close(journal_);
  journal_ = OpenForWriting(journal_path_, O_TRUNC);
  const bool ok = journal_ >= 0 && ftruncate(file_, 0) == 0 &&
                  ftruncate(file_, static_cast<off_t>(plan_.size_bytes)) == 0 &&
                  Append(journal_, FormatJournalHead(plan_)) &&
                  fsync(journal_) == 0 && SyncFolderOf(partial_path_);
  return ok ? Status() : Error("beginning");
}

// So that a full disk is met now and not after hours.
Status PartialFile::CheckSpace() {
  struct stat info {};
  struct statvfs disk {};
  if (fstat(file_, &info) != 0 || fstatvfs(file_, &disk) != 0) {
    return Error("measuring");
  }
  const uint64_t held = static_cast<uint64_t>(info.st_blocks) * 512;
  const uint64_t wanted = plan_.size_bytes > held ? plan_.size_bytes - held : 0;
  const uint64_t free = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (wanted <= free) return {};
  if (info.st_size == 0) unlink(partial_path_.c_str());
  return Status(Code::kResourceExhausted,
                fmt::format("{}: {} are missing and the disk has {} free; free "
                            "{}",
                            path_, FormatBytes(wanted), FormatBytes(free),
                            FormatBytes(wanted - free)));
}

Status PartialFile::ReserveSpace() {
  // Where the file system cannot reserve, the check above has to do.
  const int result =
      plan_.size_bytes == 0
          ? 0
          : fallocate(file_, 0, 0, static_cast<off_t>(plan_.size_bytes));
  if (result != 0 && errno != EOPNOTSUPP) return Error("reserving space for");
  return {};
}

uint64_t PartialFile::MissingBytes() const {
  uint64_t bytes = 0;
  for (size_t part = 0; part < has_part_.size(); ++part) {
    if (!has_part_[part]) bytes += plan_.BytesOf(part);
  }
  return bytes;
}

Status PartialFile::Write(size_t part, std::span<const std::byte> bytes) {
  CHECK_EQ(bytes.size(), plan_.BytesOf(part));
  if (!WriteAll(file_, plan_.OffsetOf(part), bytes)) return Error("writing");
  has_part_[part] = true;
  not_synced_.push_back(part);
  return {};
}

Status PartialFile::Sync() {
  if (not_synced_.empty()) return {};
  if (fdatasync(file_) != 0) return Error("flushing");
  std::string lines;
  for (const size_t part : not_synced_) lines += FormatJournalPart(part);
  if (!Append(journal_, lines) || fdatasync(journal_) != 0) {
    return Error("writing the journal of");
  }
  not_synced_.clear();
  return {};
}

Status PartialFile::Commit() {
  CHECK_EQ(MissingBytes(), 0u);
  if (fsync(file_) != 0) return Error("flushing");
  if (rename(partial_path_.c_str(), path_.c_str()) != 0 ||
      !SyncFolderOf(path_)) {
    return Error("renaming");
  }
  unlink(journal_path_.c_str());
  return {};
}

void PartialFile::Discard() {
  unlink(journal_path_.c_str());
  unlink(partial_path_.c_str());
}

Status PartialFile::Error(const char* what) const {
  const Code code = errno == ENOSPC || errno == EDQUOT
                        ? Code::kResourceExhausted
                        : Code::kIoError;
  return Status(code, fmt::format("{} {}: {}", what, partial_path_,
                                  std::strerror(errno)));
}

}  // namespace muster::io

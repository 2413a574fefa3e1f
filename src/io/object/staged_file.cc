#include "io/object/staged_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/check.h"

namespace muster::io {

Result<std::unique_ptr<StagedFile>> StagedFile::Open(
    RemoteFiles& files, const std::string& folder, ObjectId object,
    const StagedIdentity& identity) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return IoError(fmt::format("{}: {}", folder, error.message()));
  ASSIGN_OR_RETURN(auto map, PresenceMap::Open(folder + "/map", identity));
  const bool clear = map->clear();
  std::unique_ptr<StagedFile> file(new StagedFile(
      files, folder + "/data", object, identity, std::move(map)));
  RETURN_IF_ERROR(file->OpenData(clear));
  return file;
}

StagedFile::StagedFile(RemoteFiles& files, const std::string& path,
                       ObjectId object, const StagedIdentity& identity,
                       std::unique_ptr<PresenceMap> map)
    : RemoteFile(files, identity.name, path, identity.size_bytes),
      object_(object),
      map_(std::move(map)),
      states_(NumStagedBlocks(identity.size_bytes)),
      extents_((states_.size() + kExtentBlocks - 1) / kExtentBlocks) {}

StagedFile::~StagedFile() {
  if (fd_ >= 0) close(fd_);
}

Status StagedFile::OpenData(bool clear) {
  fd_ = open(local_path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd_ < 0) return Error("opening");
  struct stat info {};
  if (fstat(fd_, &info) != 0) return Error("measuring");
  const auto end = static_cast<off_t>(size_bytes());
  // A map without its file, or with one that somebody cut, is no map.
  if (!clear && info.st_size == end) {
    for (uint64_t block = 0; block < states_.size(); ++block) {
      if (!map_->Has(block)) continue;
      states_[block] = State::kPresent;
      ++present_blocks_;
    }
    return {};
  }
  for (uint64_t block = 0; block < states_.size(); ++block) {
    map_->Set(block, false);
  }
  RETURN_IF_ERROR(map_->Write());
  RETURN_IF_ERROR(map_->Sync());
  if (ftruncate(fd_, 0) != 0 || ftruncate(fd_, end) != 0) {
    return Error("making");
  }
  return {};
}

uint64_t StagedFile::BytesOf(BlockRun run) const {
  return std::min(run.end * kStagedBlockBytes, size_bytes()) -
         run.begin * kStagedBlockBytes;
}

void StagedFile::SetComing(BlockRun run) {
  for (uint64_t block = run.begin; block < run.end; ++block) {
    CHECK(states_[block] == State::kAbsent);
    states_[block] = State::kComing;
  }
}

void StagedFile::SetAbsent(BlockRun run) {
  for (uint64_t block = run.begin; block < run.end; ++block) {
    if (states_[block] == State::kPresent) --present_blocks_;
    states_[block] = State::kAbsent;
    map_->Set(block, false);
  }
}

void StagedFile::SetPresent(BlockRun run) {
  for (uint64_t block = run.begin; block < run.end; ++block) {
    CHECK(states_[block] == State::kComing);
    states_[block] = State::kPresent;
    unsynced_.push_back(block);
  }
  present_blocks_ += run.end - run.begin;
}

bool StagedFile::IsPresent(BlockRun run) const {
  return std::all_of(states_.begin() + static_cast<ptrdiff_t>(run.begin),
                     states_.begin() + static_cast<ptrdiff_t>(run.end),
                     [](State state) { return state == State::kPresent; });
}

void StagedFile::Hold(BlockRun run, uint64_t now) {
  for (uint64_t e = run.begin / kExtentBlocks; e * kExtentBlocks < run.end;
       ++e) {
    ++extents_[e].num_holds;
    extents_[e].last_use = now;
  }
}

void StagedFile::Release(BlockRun run) {
  for (uint64_t e = run.begin / kExtentBlocks; e * kExtentBlocks < run.end;
       ++e) {
    CHECK_GT(extents_[e].num_holds, 0u);
    --extents_[e].num_holds;
  }
}

bool StagedFile::CanGiveUp(uint64_t extent) const {
  if (extents_[extent].num_holds > 0) return false;
  const uint64_t end =
      std::min<uint64_t>((extent + 1) * kExtentBlocks, states_.size());
  for (uint64_t block = extent * kExtentBlocks; block < end; ++block) {
    if (states_[block] == State::kPresent) return true;
  }
  return false;
}

std::vector<BlockRun> StagedFile::GiveUp(uint64_t extent) {
  std::vector<BlockRun> runs;
  const uint64_t end =
      std::min<uint64_t>((extent + 1) * kExtentBlocks, states_.size());
  for (uint64_t block = extent * kExtentBlocks; block < end; ++block) {
    if (states_[block] != State::kPresent) continue;
    SetAbsent({block, block + 1});
    if (runs.empty() || runs.back().end != block)
      runs.push_back({block, block});
    runs.back().end = block + 1;
  }
  return runs;
}

Status StagedFile::Write(BlockRun run, std::span<const std::byte> bytes) {
  uint64_t offset = run.begin * kStagedBlockBytes;
  while (!bytes.empty()) {
    const ssize_t n =
        pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Error("staging");
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += static_cast<uint64_t>(n);
  }
  return {};
}

Status StagedFile::FlushData() {
  return fdatasync(fd_) == 0 ? Status() : Error("flushing");
}

Status StagedFile::Punch(BlockRun run) {
  const int result =
      fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(run.begin * kStagedBlockBytes),
                static_cast<off_t>((run.end - run.begin) * kStagedBlockBytes));
  return result == 0 ? Status() : Error("giving up a part of");
}

std::vector<uint64_t> StagedFile::TakeUnsynced() {
  return std::exchange(unsynced_, {});
}

Status StagedFile::NameInMap(std::span<const uint64_t> blocks) {
  for (const uint64_t block : blocks) {
    if (states_[block] == State::kPresent) map_->Set(block, true);
  }
  return map_->Write();
}

Status StagedFile::Error(const char* what) const {
  if (errno == ENOSPC || errno == EDQUOT) {
    return Status(
        Code::kResourceExhausted,
        fmt::format("{}: {} {}: {}; free some space, keep less of it "
                    "with --disk, or take another folder with --stage",
                    local_path(), what, name(), std::strerror(errno)));
  }
  return IoError(fmt::format("{}: {} {}: {}", local_path(), what, name(),
                             std::strerror(errno)));
}

}  // namespace muster::io

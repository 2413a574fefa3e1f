#include "experts/pack_writer.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "base/sha256.h"
#include "base/units.h"
#include "experts/pack_journal.h"
#include "experts/workers.h"

namespace muster::experts {
namespace {

namespace fs = std::filesystem;
using formats::PackManifest;

// Written between two syncs: what an interruption may cost.
constexpr uint64_t kSyncBytes = uint64_t{256} << 20;
constexpr uint64_t kHashPieceBytes = uint64_t{4} << 20;

std::string NowUtc() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

// Bytes that the folder's files really take on the disk.
uint64_t AllocatedBytes(const fs::path& folder) {
  uint64_t total = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    struct stat info {};
    if (stat(entry.path().c_str(), &info) == 0) {
      total += static_cast<uint64_t>(info.st_blocks) * 512;
    }
  }
  return total;
}

class PackWriter {
 public:
  PackWriter(const PackSource& source, const std::string& out,
             const PackOptions& options, PackProgress* progress)
      : source_(source),
        out_(WithoutSlash(out)),
        partial_(out_.string() + ".partial"),
        options_(options),
        progress_(progress != nullptr ? *progress : own_progress_) {}

  Result<PackResult> Write(const ExpertOrder& order) {
    RETURN_IF_ERROR(CheckTarget());
    ASSIGN_OR_RETURN(
        manifest_, source_.Plan(order, options_.shard_bytes, options_.copies));
    ASSIGN_OR_RETURN(modified_, source_.ModifiedTimes());
    units_ = UnitsOf(manifest_);
    RETURN_IF_ERROR(CheckDisk());
    RETURN_IF_ERROR(OpenPartial());
    RETURN_IF_ERROR(WriteDescriptions());
    RETURN_IF_ERROR(WriteUnitsAndHashSource());
    RETURN_IF_ERROR(Finish());
    return Summary();
  }

 private:
  static fs::path WithoutSlash(const std::string& out) {
    fs::path path = fs::path(out).lexically_normal();
    return path.has_filename() ? path : path.parent_path();
  }

  Status CheckTarget() const {
    std::error_code error;
    if (!fs::exists(fs::symlink_status(out_, error))) return {};
    if (fs::is_directory(out_) && fs::is_empty(out_, error)) return {};
    if (!formats::IsPack(out_)) {
      return InvalidArgument(fmt::format(
          "{}: exists and is no expert pack: name a folder that does not exist",
          out_.string()));
    }
    if (options_.force) return {};
    return InvalidArgument(fmt::format(
        "{}: a pack stands there already; --force replaces it", out_.string()));
  }

  uint64_t PackBytes() const {
    uint64_t total = 0;
    for (size_t i = 0; i < NumFiles(manifest_); ++i) {
      total += FileBytes(manifest_, i);
    }
    for (const auto& file : manifest_.descriptions) total += file.size_bytes;
    return total;
  }

  Status CheckDisk() const {
    constexpr uint64_t kMargin = uint64_t{16} << 20;  // manifest and journal
    const fs::path parent = fs::absolute(out_).parent_path();
    struct statvfs info {};
    if (statvfs(parent.c_str(), &info) != 0) {
      return IoError(
          fmt::format("{}: {}", parent.string(), std::strerror(errno)));
    }
    const uint64_t free_bytes = uint64_t{info.f_bavail} * info.f_frsize;
    const uint64_t there = AllocatedBytes(partial_);
    const uint64_t needed = PackBytes() + kMargin;
    if (free_bytes + there >= needed) return {};
    return Status(
        Code::kResourceExhausted,
        fmt::format("{}: the pack needs {} of disk{}, and {} are free{}",
                    parent.string(), FormatBytes(needed),
                    there == 0 ? ""
                               : fmt::format(" ({} are there already)",
                                             FormatBytes(there)),
                    FormatBytes(free_bytes),
                    formats::IsPack(out_)
                        ? "; the pack that stands there goes only when the new "
                          "one is whole"
                        : ""));
  }

  // What the journal belongs to: the manifest so far, and when the source's
  // files were changed.
  Checksum PlanChecksum() const {
    std::string text = formats::WriteManifest(manifest_);
    for (const int64_t time : modified_) text += fmt::format(" {}", time);
    return ChecksumOf(std::string_view(text));
  }

  Status OpenPartial() {
    std::error_code error;
    fs::create_directory(partial_, error);
    if (error) {
      return IoError(fmt::format("{}: {}", partial_.string(), error.message()));
    }
    ASSIGN_OR_RETURN(auto journal,
                     PackJournal::Open(partial_, PlanChecksum(), units_.size(),
                                       manifest_.source_files.size()));
    journal_.emplace(std::move(journal));
    if (journal_->resumed() && !SizesFit()) {
      RETURN_IF_ERROR(journal_->Restart());
    }
    if (!journal_->resumed()) RemoveLeftovers();
    for (size_t i = 0; i < NumFiles(manifest_); ++i) {
      ASSIGN_OR_RETURN(auto file,
                       io::OutputFile::Open(partial_ / FileName(manifest_, i)));
      RETURN_IF_ERROR(file.Resize(FileBytes(manifest_, i)));
      files_.push_back(std::move(file));
    }
    return io::SyncFolder(partial_);
  }

  // Files of an earlier call that had another plan.
  void RemoveLeftovers() const {
    std::error_code error;
    std::vector<fs::path> leftovers;
    for (const auto& entry : fs::directory_iterator(partial_, error)) {
      const std::string name = entry.path().filename();
      if (name == formats::kDenseName || name == formats::kManifestName ||
          ((name.starts_with("experts-") || name.starts_with("copies-")) &&
           name.ends_with(".bin"))) {
        leftovers.push_back(entry.path());
      }
    }
    for (const fs::path& path : leftovers) fs::remove(path, error);
  }

  // Of what an earlier call left.
  bool SizesFit() const {
    for (size_t i = 0; i < NumFiles(manifest_); ++i) {
      std::error_code error;
      if (fs::file_size(partial_ / FileName(manifest_, i), error) !=
          FileBytes(manifest_, i)) {
        return false;
      }
    }
    return true;
  }

  Status WriteDescriptions() const {
    for (const auto& file : manifest_.descriptions) {
      ASSIGN_OR_RETURN(const auto text, source_.Description(file.name));
      RETURN_IF_ERROR(
          io::WriteFileAtomically(partial_ / file.name, text.value_or("")));
    }
    return {};
  }

  bool Stopped() const { return options_.stop && options_.stop(); }
  Status StoppedStatus() const {
    return Status(Code::kCancelled,
                  fmt::format("stopped; what is done is kept in {}, and the "
                              "same command goes on from there",
                              partial_.string()));
  }

  // The source's SHA-256 are computed beside: they read what the units read,
  // in another order.
  Status WriteUnitsAndHashSource() {
    PlanProgress();
    Status hashed;
    Status written;
    {
      const std::jthread hasher([&] { hashed = HashSource(); });
      written = WriteUnits();
      if (!written.ok()) hasher_stop_ = true;
    }
    const Status synced = SyncDone();
    RETURN_IF_ERROR(written);
    RETURN_IF_ERROR(hashed);
    return synced;
  }

  void PlanProgress() {
    uint64_t total = 0;
    for (size_t i = 0; i < units_.size(); ++i) {
      if (!journal_->done().units[i]) total += units_[i].size_bytes;
    }
    for (size_t i = 0; i < manifest_.source_files.size(); ++i) {
      if (journal_->done().sha256[i].empty()) {
        total += manifest_.source_files[i].size_bytes;
      }
    }
    progress_.total_bytes = total;
  }

  Status WriteUnits() {
    std::vector<size_t> todo;
    for (size_t i = 0; i < units_.size(); ++i) {
      if (const auto& done = journal_->done().units[i]) {
        ChecksumOfUnit(manifest_, units_[i]) = *done;
        ++num_resumed_;
      } else {
        todo.push_back(i);
      }
    }
    std::vector<UnitBuffers> buffers(options_.num_threads);
    return RunWorkers(options_.num_threads, todo.size(),
                      [&](size_t worker, size_t i) {
                        return WriteUnit(todo[i], buffers[worker]);
                      });
  }

  Status WriteUnit(size_t i, UnitBuffers& buffers) {
    if (Stopped()) return StoppedStatus();
    const PackUnit& unit = units_[i];
    ASSIGN_OR_RETURN(
        const Checksum checksum,
        source_.Produce(manifest_, unit, nullptr, files_[unit.file], buffers));
    progress_.done_bytes += unit.size_bytes;
    MutexLock lock(mutex_);
    ChecksumOfUnit(manifest_, unit) = checksum;
    written_.push_back(i);
    written_bytes_ += unit.size_bytes;
    return written_bytes_ < kSyncBytes ? Status() : SyncLocked();
  }

  Status SyncDone() {
    MutexLock lock(mutex_);
    return SyncLocked();
  }

  // First the bytes, then the word that they are there. Others wait meanwhile:
  // the disk is busy anyway.
  Status SyncLocked() REQUIRES(mutex_) {
    std::set<size_t> touched;
    for (const size_t i : written_) touched.insert(units_[i].file);
    for (const size_t file : touched) RETURN_IF_ERROR(files_[file].Sync());
    for (const size_t i : written_) {
      journal_->AddUnit(i, ChecksumOfUnit(manifest_, units_[i]));
    }
    written_.clear();
    written_bytes_ = 0;
    return journal_->Sync();
  }

  Status HashSource() {
    std::vector<std::byte> piece(kHashPieceBytes);
    for (size_t i = 0; i < manifest_.source_files.size(); ++i) {
      std::string& sha256 = manifest_.source_files[i].sha256;
      sha256 = DoneSha256(i);
      if (!sha256.empty()) continue;
      ASSIGN_OR_RETURN(const auto file, io::File::Open(source_.PathOfFile(i)));
      Sha256 hash;
      for (uint64_t at = 0; at < file.size_bytes(); at += kHashPieceBytes) {
        if (hasher_stop_ || Stopped()) return StoppedStatus();
        const auto bytes = std::span(piece).first(
            std::min(kHashPieceBytes, file.size_bytes() - at));
        RETURN_IF_ERROR(file.ReadAt(at, bytes));
        hash.Update(bytes);
        progress_.done_bytes += bytes.size();
      }
      sha256 = Hex(hash.Finish());
      MutexLock lock(mutex_);
      journal_->AddSha256(i, sha256);
    }
    return {};
  }

  std::string DoneSha256(size_t i) {
    MutexLock lock(mutex_);
    return journal_->done().sha256[i];
  }

  Status Finish() {
    ASSIGN_OR_RETURN(const auto modified, source_.ModifiedTimes());
    if (modified != modified_) {
      return Corrupt(
          fmt::format("{}: changed while it was packed; run the command again",
                      source_.PathOfFile(0)));
    }
    manifest_.created = NowUtc();
    files_.clear();
    RETURN_IF_ERROR(io::WriteFileAtomically(partial_ / formats::kManifestName,
                                            formats::WriteManifest(manifest_)));
    return MoveIntoPlace();
  }

  // A pack that stands there changes places with the new one, then goes.
  Status MoveIntoPlace() {
    std::error_code error;
    fs::remove(partial_ / PackJournal::kName, error);
    const bool replaces = formats::IsPack(out_);
    const bool exchanged =
        replaces && renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD,
                              out_.c_str(), RENAME_EXCHANGE) == 0;
    if (replaces) fs::remove_all(exchanged ? partial_ : out_, error);
    if (!exchanged) fs::rename(partial_, out_, error);
    if (error) {
      return IoError(fmt::format("{}: {}", out_.string(), error.message()));
    }
    return io::SyncFolder(fs::absolute(out_).parent_path());
  }

  PackResult Summary() const {
    PackResult result{.size_bytes = PackBytes(),
                      .num_shards = NumFiles(manifest_) - 1,
                      .num_units = units_.size(),
                      .num_resumed_units = num_resumed_};
    for (const auto& layer : manifest_.layers) {
      result.num_experts += layer.experts.size();
    }
    return result;
  }

  const PackSource& source_;
  const fs::path out_;
  const fs::path partial_;
  const PackOptions& options_;
  PackProgress own_progress_;
  PackProgress& progress_;

  PackManifest manifest_;
  std::vector<int64_t> modified_;  // of the source's files
  std::vector<PackUnit> units_;
  std::vector<io::OutputFile> files_;  // by PackUnit::file
  std::atomic<bool> hasher_stop_{false};
  size_t num_resumed_ = 0;

  Mutex mutex_;  // of the journal and of what follows
  std::optional<PackJournal> journal_;
  std::vector<size_t> written_ GUARDED_BY(mutex_);  // since the last sync
  uint64_t written_bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace

Result<PackResult> WritePack(const PackSource& source, const ExpertOrder& order,
                             const std::string& out, const PackOptions& options,
                             PackProgress* progress) {
  return PackWriter(source, out, options, progress).Write(order);
}

}  // namespace muster::experts

#include "experts/pack_verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <tuple>

#include "base/mutex.h"
#include "experts/workers.h"

namespace muster::experts {
namespace {

namespace fs = std::filesystem;
using formats::PackManifest;

constexpr uint64_t kMaxManifestBytes = uint64_t{64} << 20;
constexpr uint64_t kPieceBytes = uint64_t{4} << 20;
constexpr const char* kWholeFile = "the file";
constexpr const char* kBadChecksum = "its checksum does not fit";

Result<PackManifest> LoadManifest(const std::string& folder) {
  if (!formats::IsPack(folder)) {
    return InvalidArgument(fmt::format("{}: not an expert pack", folder));
  }
  const std::string path = fs::path(folder) / formats::kManifestName;
  ASSIGN_OR_RETURN(const std::string text,
                   io::ReadTextFile(path, kMaxManifestBytes));
  return formats::ReadManifest(text, path);
}

class Verifier {
 public:
  Verifier(const std::string& folder, PackManifest manifest,
           PackProgress* progress)
      : folder_(folder),
        manifest_(std::move(manifest)),
        units_(UnitsOf(manifest_)),
        progress_(progress != nullptr ? *progress : own_progress_) {}

  Result<PackCheck> Verify(size_t num_threads) {
    for (const auto& file : manifest_.descriptions) CheckDescription(file);
    for (size_t i = 0; i < NumFiles(manifest_); ++i) OpenFile(i);
    for (const PackUnit& unit : units_) {
      check_.num_experts += unit.kind == UnitKind::kExpert ? 1 : 0;
      progress_.total_bytes += unit.padded_bytes;
    }
    RETURN_IF_ERROR(
        RunWorkers(num_threads, units_.size(), [&](size_t, size_t i) {
          CheckUnit(units_[i]);
          return Status();
        }));
    check_.checked_bytes += progress_.done_bytes;
    const auto place = [](const PackDamage& d) {
      return std::tuple(d.file, d.part != kWholeFile, d.offset);
    };
    std::sort(check_.damages.begin(), check_.damages.end(),
              [&](const PackDamage& a, const PackDamage& b) {
                return place(a) < place(b);
              });
    return std::move(check_);
  }

 private:
  void Add(PackDamage damage) {
    MutexLock lock(mutex_);
    check_.damages.push_back(std::move(damage));
  }

  void CheckDescription(const PackManifest::Description& file) {
    const auto text =
        io::ReadTextFile(fs::path(folder_) / file.name, file.size_bytes);
    check_.checked_bytes += file.size_bytes;
    if (text.ok() && ChecksumOf(std::string_view(*text)) == file.checksum) {
      return;
    }
    Add({.file = file.name,
         .part = kWholeFile,
         .size_bytes = file.size_bytes,
         .what = text.ok() ? kBadChecksum : text.status().message()});
  }

  // Null when it cannot be opened: the file is then one damage, and its units
  // are others, because they are what is repaired.
  void OpenFile(size_t i) {
    const uint64_t expected = FileBytes(manifest_, i);
    auto file = io::File::Open(fs::path(folder_) / FileName(manifest_, i));
    std::optional<io::File>& place = files_.emplace_back();
    if (file.ok() && file->size_bytes() != expected) {
      Add({.file = FileName(manifest_, i),
           .part = kWholeFile,
           .size_bytes = expected,
           .what = fmt::format("{} bytes, expected {}", file->size_bytes(),
                               expected)});
    } else if (!file.ok()) {
      Add({.file = FileName(manifest_, i),
           .part = kWholeFile,
           .size_bytes = expected,
           .what = file.status().code() == Code::kNotFound
                       ? "missing"
                       : file.status().message()});
    }
    if (file.ok()) place = std::move(file).value();
  }

  void CheckUnit(const PackUnit& unit) {
    const std::string what = FaultOf(unit);
    progress_.done_bytes += unit.padded_bytes;
    if (what.empty()) return;
    Add({.file = FileName(manifest_, unit.file),
         .part = Describe(manifest_, unit),
         .offset = unit.offset,
         .size_bytes = unit.size_bytes,
         .what = what});
  }

  // Empty: none.
  std::string FaultOf(const PackUnit& unit) {
    const std::optional<io::File>& file = files_[unit.file];
    if (!file) return "the file is missing";
    std::vector<std::byte> room(std::min(kPieceBytes, unit.padded_bytes));
    ChecksumStream checksum;
    bool padding_is_zero = true;
    for (uint64_t done = 0; done < unit.padded_bytes; done += room.size()) {
      const auto piece = std::span(room).first(
          std::min<uint64_t>(room.size(), unit.padded_bytes - done));
      if (unit.offset + done + piece.size() > file->size_bytes()) {
        return "the file ends before";
      }
      const Status status = file->ReadAt(unit.offset + done, piece);
      if (!status.ok()) return status.message();
      const uint64_t left = unit.size_bytes - std::min(unit.size_bytes, done);
      const size_t covered = std::min<uint64_t>(piece.size(), left);
      checksum.Update(piece.first(covered));
      const auto padding = piece.subspan(covered);
      padding_is_zero &=
          std::all_of(padding.begin(), padding.end(),
                      [](std::byte b) { return b == std::byte{0}; });
    }
    if (checksum.Get() != ChecksumOfUnit(manifest_, unit)) return kBadChecksum;
    return padding_is_zero ? "" : "the zeros behind it are none";
  }

  const std::string folder_;
  const PackManifest manifest_;
  const std::vector<PackUnit> units_;
  PackProgress own_progress_;
  PackProgress& progress_;
  std::vector<std::optional<io::File>> files_;  // by PackUnit::file
  Mutex mutex_;                                 // of what follows
  PackCheck check_;
};

// The same model, as far as a look at it tells: each part's checksum tells
// more.
Status CheckSource(const PackManifest& manifest, const PackSource& source) {
  ASSIGN_OR_RETURN(const auto files, source.Files());
  for (size_t i = 0; i < manifest.source_files.size(); ++i) {
    const auto& wanted = manifest.source_files[i];
    if (files.size() == manifest.source_files.size() &&
        files[i].size_bytes == wanted.size_bytes) {
      continue;
    }
    return InvalidArgument(fmt::format(
        "{}: not the model that the pack was made from, which has {} file{}, "
        "among them '{}' of {} bytes",
        source.PathOfFile(0), manifest.source_files.size(),
        manifest.source_files.size() == 1 ? "" : "s", wanted.name,
        wanted.size_bytes));
  }
  return {};
}

Status RepairDescription(const std::string& folder,
                         const PackManifest::Description& file,
                         const PackSource& source) {
  ASSIGN_OR_RETURN(const auto text, source.Description(file.name));
  if (!text || ChecksumOf(std::string_view(*text)) != file.checksum) {
    return InvalidArgument(
        fmt::format("{}: has another {} than the pack was made with",
                    source.PathOfFile(0), file.name));
  }
  return io::WriteFileAtomically(fs::path(folder) / file.name, *text);
}

}  // namespace

Result<PackCheck> VerifyPack(const std::string& folder, size_t num_threads,
                             PackProgress* progress) {
  ASSIGN_OR_RETURN(auto manifest, LoadManifest(folder));
  return Verifier(folder, std::move(manifest), progress).Verify(num_threads);
}

Status RepairPack(const std::string& folder, const PackCheck& check,
                  const PackSource& source) {
  ASSIGN_OR_RETURN(const auto manifest, LoadManifest(folder));
  RETURN_IF_ERROR(CheckSource(manifest, source));
  std::set<std::pair<std::string, uint64_t>> damaged;
  std::set<std::string> files;
  for (const PackDamage& damage : check.damages) {
    files.insert(damage.file);
    if (damage.part != kWholeFile) damaged.emplace(damage.file, damage.offset);
  }
  for (const auto& file : manifest.descriptions) {
    if (!files.contains(file.name)) continue;
    RETURN_IF_ERROR(RepairDescription(folder, file, source));
  }
  const std::vector<PackUnit> units = UnitsOf(manifest);
  UnitBuffers buffers;
  for (size_t i = 0; i < NumFiles(manifest); ++i) {
    if (!files.contains(FileName(manifest, i))) continue;
    ASSIGN_OR_RETURN(
        const auto out,
        io::OutputFile::Open(fs::path(folder) / FileName(manifest, i)));
    RETURN_IF_ERROR(out.Resize(FileBytes(manifest, i)));
    for (const PackUnit& unit : units) {
      if (unit.file != i ||
          !damaged.contains({FileName(manifest, i), unit.offset})) {
        continue;
      }
      RETURN_IF_ERROR(source
                          .Produce(manifest, unit,
                                   &ChecksumOfUnit(manifest, unit), out,
                                   buffers)
                          .status());
    }
    RETURN_IF_ERROR(out.Sync());
  }
  return io::SyncFolder(folder);
}

}  // namespace muster::experts

#include "experts/pack_journal.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "io/file.h"

namespace muster::experts {
namespace {

constexpr uint64_t kMaxJournalBytes = uint64_t{256} << 20;

}  // namespace

PackJournal::PackJournal(io::OutputFile file, std::string first_line,
                         size_t num_units, size_t num_source_files)
    : file_(std::move(file)),
      first_line_(std::move(first_line)),
      done_{.units = std::vector<std::optional<Checksum>>(num_units),
            .sha256 = std::vector<std::string>(num_source_files)} {}

Result<PackJournal> PackJournal::Open(const std::string& folder,
                                      const Checksum& plan, size_t num_units,
                                      size_t num_source_files) {
  const std::string path = std::filesystem::path(folder) / kName;
  ASSIGN_OR_RETURN(auto file, io::OutputFile::Open(path));
  if (!file.TryLock()) {
    return Status(Code::kUnavailable,
                  fmt::format("{}: another process is writing here", folder));
  }
  ASSIGN_OR_RETURN(const std::string text,
                   io::ReadTextFile(path, kMaxJournalBytes));
  PackJournal journal(std::move(file),
                      fmt::format("muster-pack-journal 1 {}\n", ToHex(plan)),
                      num_units, num_source_files);
  if (text.starts_with(journal.first_line_)) {
    journal.resumed_ = true;
    journal.Parse(text);
    RETURN_IF_ERROR(journal.file_.Resize(journal.end_));
  } else {
    RETURN_IF_ERROR(journal.Restart());
  }
  return journal;
}

// Up to the first line that was not written whole.
void PackJournal::Parse(const std::string& text) {
  end_ = first_line_.size();
  while (true) {
    const size_t line_end = text.find('\n', end_);
    if (line_end == std::string::npos) return;
    if (!ParseLine(text.substr(end_, line_end - end_))) return;
    end_ = line_end + 1;
  }
}

// "unit 17 0123...", "sha256 0 0123...".
bool PackJournal::ParseLine(const std::string& line) {
  const size_t space = line.find(' ');
  if (space == std::string::npos) return false;
  const std::string kind = line.substr(0, space);
  size_t number = 0;
  const char* begin = line.data() + space + 1;
  const char* end = line.data() + line.size();
  const auto [next, error] = std::from_chars(begin, end, number);
  if (error != std::errc() || next == end || *next != ' ') return false;
  const std::string value(next + 1, end);
  if (kind == "unit" && number < done_.units.size()) {
    done_.units[number] = ChecksumFromHex(value);
    return done_.units[number].has_value();
  }
  if (kind == "sha256" && number < done_.sha256.size() && value.size() == 64) {
    done_.sha256[number] = value;
    return true;
  }
  return false;
}

Status PackJournal::Restart() {
  for (auto& unit : done_.units) unit.reset();
  for (auto& sha256 : done_.sha256) sha256.clear();
  resumed_ = false;
  RETURN_IF_ERROR(file_.Resize(0));
  end_ = 0;
  pending_ = first_line_;
  return Sync();
}

void PackJournal::AddUnit(size_t unit, const Checksum& checksum) {
  done_.units[unit] = checksum;
  pending_ += fmt::format("unit {} {}\n", unit, ToHex(checksum));
}

void PackJournal::AddSha256(size_t source_file, const std::string& sha256) {
  done_.sha256[source_file] = sha256;
  pending_ += fmt::format("sha256 {} {}\n", source_file, sha256);
}

Status PackJournal::Sync() {
  RETURN_IF_ERROR(
      file_.WriteAt(end_, std::as_bytes(std::span(std::as_const(pending_)))));
  end_ += pending_.size();
  pending_.clear();
  return file_.Sync();
}

}  // namespace muster::experts

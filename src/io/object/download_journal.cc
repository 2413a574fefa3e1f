#include "io/object/download_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace muster::io {
namespace {

constexpr std::string_view kFirstLine = "muster-download 1";
constexpr uint64_t kMaxParts = 1 << 24;

// The next whole line; nothing at the end or before a torn one.
std::optional<std::string_view> TakeLine(std::string_view* text) {
  const size_t end = text->find('\n');
  if (end == text->npos) return std::nullopt;
  const std::string_view line = text->substr(0, end);
  text->remove_prefix(end + 1);
  return line;
}

// What follows `name` and a space on the next line.
std::optional<std::string_view> TakeField(std::string_view* text,
                                          std::string_view name) {
  const auto line = TakeLine(text);
  if (!line || line->substr(0, name.size()) != name ||
      line->size() <= name.size() || (*line)[name.size()] != ' ') {
    return std::nullopt;
  }
  return line->substr(name.size() + 1);
}

std::optional<uint64_t> ParseNumber(std::optional<std::string_view> digits) {
  if (!digits) return std::nullopt;
  uint64_t value = 0;
  const char* end = digits->data() + digits->size();
  const auto [stop, error] = std::from_chars(digits->data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

}  // namespace

size_t DownloadPlan::NumParts() const {
  return static_cast<size_t>(size_bytes / part_bytes +
                             (size_bytes % part_bytes != 0));
}

uint64_t DownloadPlan::BytesOf(size_t part) const {
  return std::min(part_bytes, size_bytes - OffsetOf(part));
}

bool DownloadPlan::CanResume(const DownloadPlan& earlier) const {
  const bool identified = !etag.empty() || !sha256.empty();
  return identified && size_bytes == earlier.size_bytes &&
         part_bytes == earlier.part_bytes && etag == earlier.etag &&
         sha256 == earlier.sha256;
}

std::string FormatJournalHead(const DownloadPlan& plan) {
  return fmt::format("{}\nsize {}\npart {}\netag {}\nsha256 {}\n", kFirstLine,
                     plan.size_bytes, plan.part_bytes, plan.etag, plan.sha256);
}

std::string FormatJournalPart(size_t part) {
  return fmt::format("done {}\n", part);
}

Result<DownloadJournal> ParseDownloadJournal(std::string_view text) {
  if (TakeLine(&text) != kFirstLine) {
    return Corrupt("not the journal of a download");
  }
  const auto size = ParseNumber(TakeField(&text, "size"));
  const auto part = ParseNumber(TakeField(&text, "part"));
  const auto etag = TakeField(&text, "etag");
  const auto sha256 = TakeField(&text, "sha256");
  if (!size || !part || *part == 0 || !etag || !sha256 ||
      *size / *part >= kMaxParts) {
    return Corrupt("the journal's head is damaged");
  }
  DownloadJournal journal = {
      .plan = {*size, *part, std::string(*etag), std::string(*sha256)}};
  journal.has_part.resize(journal.plan.NumParts());
  while (text.find('\n') != text.npos) {
    const auto done = ParseNumber(TakeField(&text, "done"));
    if (!done || *done >= journal.has_part.size()) {
      return Corrupt("a line of the journal is damaged");
    }
    journal.has_part[static_cast<size_t>(*done)] = true;
  }
  return journal;
}

}  // namespace muster::io

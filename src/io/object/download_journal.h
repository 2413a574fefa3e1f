// What of a download is on disk already, as text beside it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::io {

// Which bytes are downloaded, and in what parts.
struct DownloadPlan {
  uint64_t size_bytes = 0;
  uint64_t part_bytes = 0;  // of all parts but the last
  std::string etag;         // empty: none
  std::string sha256;       // hexadecimal; empty: not known

  size_t NumParts() const;
  uint64_t OffsetOf(size_t part) const { return part * part_bytes; }
  uint64_t BytesOf(size_t part) const;

  // The same bytes for certain? Without ETag and checksum, nothing is.
  bool CanResume(const DownloadPlan& earlier) const;
};

struct DownloadJournal {
  DownloadPlan plan;
  std::vector<bool> has_part;  // [NumParts]
};

// The journal's head, and one line per part that is on disk.
std::string FormatJournalHead(const DownloadPlan& plan);
std::string FormatJournalPart(size_t part);

// A last line without its end is one that was being written: it is left out.
// Fails with kCorrupt.
Result<DownloadJournal> ParseDownloadJournal(std::string_view text);

}  // namespace muster::io

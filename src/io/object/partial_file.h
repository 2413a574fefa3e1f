// A file that comes in parts, in any order, and is there only when it is whole.
// While it is not: PATH.partial and PATH.partial.journal.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "io/object/download_journal.h"

namespace muster::io {

// Belongs to one thread; one per path in all processes (a lock on the file).
class PartialFile {
 public:
  // Goes on with an earlier attempt at the same bytes, or begins anew. Fails
  // with kUnavailable when another process is at it, kResourceExhausted when
  // the disk has too little space for what is missing, kIoError.
  static Result<std::unique_ptr<PartialFile>> Open(const std::string& path,
                                                   DownloadPlan plan);
  // Keeps what was synced for a later attempt, unless committed or discarded.
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  const DownloadPlan& plan() const { return plan_; }
  bool HasPart(size_t part) const { return has_part_[part]; }
  uint64_t MissingBytes() const;
  const std::string& partial_path() const { return partial_path_; }

  // REQUIRES: bytes.size() == plan().BytesOf(part).
  Status Write(size_t part, std::span<const std::byte> bytes);
  // Flushes what was written, then notes it in the journal: after a power
  // failure no part is believed that is not on the disk.
  Status Sync();
  // Makes it PATH, atomically and lastingly. REQUIRES: no part is missing.
  Status Commit();
  // Removes it and its journal.
  void Discard();

 private:
  PartialFile(const std::string& path, DownloadPlan plan);
  Status Lock();
  Status CheckSpace();
  Status Resume();
  Status BeginAnew();
  Status ReserveSpace();
  Status Error(const char* what) const;

  const std::string path_;
  const std::string partial_path_;
  const std::string journal_path_;
  const DownloadPlan plan_;
  int file_ = -1;
  int journal_ = -1;
  std::vector<bool> has_part_;
  std::vector<size_t> not_synced_;  // parts that the journal does not name yet
};

}  // namespace muster::io

// A whole remote object to a file: in parallel ranges, resumable, verified.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "io/object/object_client.h"

namespace muster::io {

struct DownloadOptions {
  uint64_t part_bytes = 8 << 20;
  size_t max_parallel = 8;         // parts in memory and under way
  uint64_t sync_bytes = 64 << 20;  // what a crash costs at most
  std::string sha256;              // that it must have; empty: any
};

// May be read from another thread while a download runs.
struct DownloadProgress {
  std::atomic<uint64_t> total_bytes = 0;
  std::atomic<uint64_t> done_bytes = 0;  // on disk, earlier attempts included
  std::atomic<uint64_t> verified_bytes = 0;
  std::atomic<bool> stop = false;  // set it to end the download with kCancelled
};

struct DownloadOutcome {
  uint64_t size_bytes = 0;
  uint64_t fetched_bytes = 0;  // by this attempt
  std::string sha256;          // that was checked; empty: none was known
};

// Writes PATH.partial and renames it to `path` once it is whole and, if a
// checksum is known, right; an earlier attempt's parts are kept when the object
// is the same (ETag, size, checksum). A `path` that is there with the right
// checksum is left alone. Blocks. REQUIRES: nothing is in flight in `client`.
// Fails as ObjectClient and PartialFile do, and with kCorrupt when the checksum
// is wrong: then nothing is kept.
Result<DownloadOutcome> DownloadObject(ObjectClient& client,
                                       const std::string& url,
                                       const std::string& path,
                                       const DownloadOptions& options,
                                       DownloadProgress& progress);

}  // namespace muster::io

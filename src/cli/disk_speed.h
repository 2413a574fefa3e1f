// How fast the disk behind a folder is read, past the page cache where the file
// system allows it.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace muster::cli {

struct DiskSpeed {
  bool direct_io = false;  // false: the cache may have answered
  double read_bytes_per_second = 0;
  uint64_t free_bytes = 0;
};

// Writes a temporary file of 256 MiB, reads it back in pieces of 2 MiB and
// deletes it. Blocks for a second or so.
Result<DiskSpeed> MeasureDisk(const std::string& folder);

}  // namespace muster::cli

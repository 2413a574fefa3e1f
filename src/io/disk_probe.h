// How a disk is read fastest, measured on a file of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"

namespace muster::io {

// A way to read and what it reached.
struct DiskTrial {
  bool direct = false;  // past the page cache
  size_t depth = 0;     // reads in flight
  double bytes_per_second = 0;
};

struct DiskProbe {
  DiskTrial best;
  std::string engine;          // "io_uring, depth 8": that of `best`
  std::string why_not_direct;  // empty: direct reads work
};

// Reads pieces of an expert's size (2 MiB) at random offsets in several ways,
// for about a second in all. `path` is a file, whose pages may leave the cache,
// or a folder: then a file of 256 MiB is written there and deleted. Blocks.
Result<DiskProbe> ProbeDisk(const std::string& path);

// The fastest; of those within 5 % of it the direct one (it copies nothing and
// needs no cache) and the shallowest (a read that is waited for stands behind
// fewer others). REQUIRES: not empty.
DiskTrial ChooseTrial(std::span<const DiskTrial> trials);

}  // namespace muster::io

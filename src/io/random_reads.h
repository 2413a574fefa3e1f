// How fast an engine reads pieces at random places of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "io/direct_file.h"
#include "io/read_engine.h"

namespace muster::io {

struct RandomReads {
  size_t depth = 1;        // reads in flight
  size_t piece_bytes = 0;  // multiple of kReadAlignment, at most the file's
  double seconds = 0;      // no read starts after it
  uint64_t seed = 1;
  std::span<std::byte> dst;  // [depth * piece_bytes], aligned
};

// Bytes per second, the last read's end included. What the page cache has of a
// piece of a buffered file is dropped before it is read. Blocks. Fails with
// kIoError when a read does; others may then still be in flight.
Result<double> MeasureRandomReads(ReadEngine& engine, const DirectFile& file,
                                  const RandomReads& plan);

}  // namespace muster::io

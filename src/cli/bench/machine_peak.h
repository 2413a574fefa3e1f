// The machine's own limits, measured.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::cli {

struct MachinePeak {
  size_t num_threads = 0;
  size_t buffer_bytes = 0;  // what the memory was measured with
  double read_bytes_per_second = 0;
  double byte_ops_per_second = 0;    // multiplications and additions
  double bfloat_ops_per_second = 0;  // likewise
  double float_ops_per_second = 0;   // likewise
};

// Reads a buffer far larger than the last-level cache, in huge pages where the
// kernel gives them, with `num_threads` threads; the best of several runs.
// Takes at most a quarter of the memory that is free. Blocks for a second or
// so.
struct ReadPeak {
  size_t buffer_bytes = 0;
  double bytes_per_second = 0;
};
ReadPeak MeasureReadPeak(size_t num_threads);

// That, and the arithmetic of the instruction set in use.
MachinePeak MeasureMachinePeak(size_t num_threads);

}  // namespace muster::cli

#include "cli/bench/machine_peak.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "kernels/peak.h"
#include "tensor/aligned_buffer.h"

namespace muster::cli {
namespace {

// The best run within this time counts: others were disturbed.
constexpr double kSeconds = 0.7;
constexpr size_t kSliceBytes = size_t{4} << 20;  // a task of a thread

// A sixteenth of it stays in the cache at most.
size_t BufferBytes() {
  constexpr size_t kLeast = size_t{256} << 20, kMost = size_t{2} << 30;
  const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const size_t wanted = 16 * static_cast<size_t>(std::max(l3, 0L));
  const size_t free = ReadMemoryInfo().usable_bytes() / 4;
  const size_t bytes = std::min(std::clamp(wanted, kLeast, kMost), free);
  return std::max(bytes / kSliceBytes, size_t{1}) * kSliceBytes;
}

double Seconds(std::chrono::steady_clock::time_point since) {
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - since;
  return spent.count();
}

// fn() returns how much it did; the most a second of several runs.
template <class Fn>
double BestRate(const Fn& fn) {
  double best = 0;
  const auto begin = std::chrono::steady_clock::now();
  while (Seconds(begin) < kSeconds) {
    const auto start = std::chrono::steady_clock::now();
    const auto amount = static_cast<double>(fn());
    best = std::max(best, amount / Seconds(start));
  }
  return best;
}

// Operations of `spin` on all threads at once, long enough to outlast the start
// of the threads.
template <class Spin>
double BestOps(ThreadPool& pool, const Spin& spin) {
  constexpr uint64_t kRounds = 1'000'000;  // some 3 ms
  return BestRate([&] {
    std::atomic<uint64_t> ops{0};
    pool.ForEach(pool.num_threads() * 4, [&](size_t) { ops += spin(kRounds); });
    return ops.load();
  });
}

}  // namespace

ReadPeak MeasureReadPeak(size_t num_threads) {
  AlignedBuffer buffer(BufferBytes());
  ThreadPool pool(num_threads);
  const size_t num_slices = buffer.size_bytes() / kSliceBytes;
  // Written first: pages that nobody wrote are all the same page of zeros.
  pool.ForEach(num_slices, [&](size_t slice) {
    std::memset(buffer.data() + slice * kSliceBytes, 1, kSliceBytes);
  });
  std::atomic<uint64_t> sum{0};
  const double rate = BestRate([&] {
    pool.ForEach(num_slices, [&](size_t slice) {
      sum ^= kernels::ReadAll(buffer.data() + slice * kSliceBytes, kSliceBytes);
    });
    return buffer.size_bytes();
  });
  return {buffer.size_bytes(), rate};
}

MachinePeak MeasureMachinePeak(size_t num_threads) {
  const ReadPeak read = MeasureReadPeak(num_threads);
  ThreadPool pool(num_threads);
  return {.num_threads = num_threads,
          .buffer_bytes = read.buffer_bytes,
          .read_bytes_per_second = read.bytes_per_second,
          .byte_ops_per_second = BestOps(pool, kernels::SpinByteProducts),
          .bfloat_ops_per_second = BestOps(pool, kernels::SpinBFloatProducts),
          .float_ops_per_second = BestOps(pool, kernels::SpinFloatProducts)};
}

}  // namespace muster::cli

// Attention of one decoded token: 32 query heads of 128 over 4 key-value heads,
// on one thread.
#include "kernels/attention.h"

#include <benchmark/benchmark.h>

#include <vector>

#include "bench/rates.h"
#include "tensor/aligned_buffer.h"

namespace muster::bench {
namespace {

using kernels::KvType;

constexpr size_t kHeads = 32, kKvHeads = 4, kHeadDim = 128;

// Keys and values of `positions`, the same at each.
AlignedBuffer FilledCache(KvType type, size_t positions) {
  const size_t vector_bytes = kernels::KvVectorBytes(type, kHeadDim);
  AlignedBuffer cache(2 * kKvHeads * positions * vector_bytes);
  const std::vector<float> x(kHeadDim, 0.25f);
  for (size_t at = 0; at < cache.size_bytes(); at += vector_bytes) {
    kernels::StoreKv(type, x.data(), kHeadDim, cache.data() + at);
  }
  return cache;
}

void Decode(benchmark::State& state, KvType type) {
  const auto positions = static_cast<size_t>(state.range(0));
  const size_t part_bytes = positions * kernels::KvVectorBytes(type, kHeadDim);
  const AlignedBuffer cache = FilledCache(type, positions);
  const std::vector<float> q(kHeadDim, 0.5f);
  std::vector<float> scores(positions), out(kHeadDim);
  for (auto _ : state) {
    for (size_t head = 0; head < kHeads; ++head) {
      const size_t kv_head = head / (kHeads / kKvHeads);
      const std::byte* keys = cache.data() + 2 * kv_head * part_bytes;
      kernels::AttendHead(q.data(), {type, keys, keys + part_bytes, kHeadDim},
                          0, positions, 0.1f, scores.data(), out.data());
    }
  }
  SetRates(state, static_cast<double>(cache.size_bytes()),
           4.0 * static_cast<double>(kHeads * kHeadDim * positions));
}

BENCHMARK_CAPTURE(Decode, f16, KvType::kF16)->Arg(512)->Arg(4096)->Arg(16384);
BENCHMARK_CAPTURE(Decode, q8, KvType::kQ8)->Arg(512)->Arg(4096)->Arg(16384);
BENCHMARK_CAPTURE(Decode, f32, KvType::kF32)->Arg(512)->Arg(4096)->Arg(16384);

}  // namespace
}  // namespace muster::bench

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

// Keys, then values of `positions`, head by head; the same at each position.
AlignedBuffer FilledCache(KvType type, size_t positions) {
  const size_t tile_bytes = kernels::KvTileBytes(type, kHeadDim);
  const size_t part_bytes = positions / kernels::kKvTilePositions * tile_bytes;
  AlignedBuffer cache(2 * kKvHeads * part_bytes);
  const std::vector<float> x(kHeadDim, 0.25f);
  for (size_t at = 0; at < cache.size_bytes(); at += tile_bytes) {
    const bool is_keys = at / part_bytes % 2 == 0;
    for (size_t slot = 0; slot < kernels::kKvTilePositions; ++slot) {
      (is_keys ? kernels::StoreKey : kernels::StoreValue)(
          type, x.data(), kHeadDim, slot, cache.data() + at);
    }
  }
  return cache;
}

void Decode(benchmark::State& state, KvType type) {
  const auto positions = static_cast<size_t>(state.range(0));
  const AlignedBuffer cache = FilledCache(type, positions);
  const size_t part_bytes = cache.size_bytes() / (2 * kKvHeads);
  const size_t block_bytes =
      part_bytes / (positions / kernels::kAttentionBlock);
  const size_t heads = kHeads / kKvHeads;
  const std::vector<float> q(heads * kHeadDim, 0.5f);
  std::vector<float> packed(q.size()), out(q.size());
  std::vector<float> partials(heads * kernels::PartialFloats(kHeadDim));
  std::vector<float> states(partials.size());
  const kernels::PositionRange range = {.begin = 0, .end = positions};
  const kernels::QueryTile tile = {.q = q.data(),
                                   .row_stride = q.size(),
                                   .num_heads = heads,
                                   .ranges = &range,
                                   .num_rows = 1,
                                   .head_dim = kHeadDim};
  for (auto _ : state) {
    for (size_t kv_head = 0; kv_head < kKvHeads; ++kv_head) {
      const std::byte* keys = cache.data() + 2 * kv_head * part_bytes;
      kernels::PackQueries(tile, 0.1f, packed.data());
      kernels::ClearStates(tile, states.data());
      for (size_t b = 0; b < positions / kernels::kAttentionBlock; ++b) {
        const std::byte* block = keys + b * block_bytes;
        kernels::AttendBlock(tile, packed.data(),
                             {type, block, block + part_bytes, kHeadDim}, b,
                             partials.data());
        kernels::MergeBlock(tile, b, partials.data(), states.data());
      }
      kernels::FinishStates(tile, states.data(), out.data());
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

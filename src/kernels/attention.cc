#include "kernels/attention.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/attention_keys.h"
#include "kernels/attention_partial.h"
#include "kernels/attention_values.h"
#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// Queries that share loads of keys and values: their sums fill the registers.
constexpr size_t kMaxGroup = kParts == 1 ? 8 : 4;

// Cuts a tile's queries into groups of kMaxGroup, and the rest into smaller
// powers of two. fn(first query, number).
template <class Fn>
HWY_INLINE void ForEachGroup(const QueryTile& tile, const Fn& fn) {
  const size_t num_queries = tile.num_queries();
  for (size_t first = 0; first < num_queries;) {
    const size_t count =
        std::min(kMaxGroup, std::bit_floor(num_queries - first));
    fn(first, count);
    first += count;
  }
}

// A group is laid out [head_dim, count], so that a broadcast walks memory.
void PackQueries(const QueryTile& tile, float scale,
                 float* HWY_RESTRICT packed) {
  ForEachGroup(tile, [&](size_t first, size_t count) {
    float* group = packed + first * tile.head_dim;
    for (size_t i = 0; i < count; ++i) {
      const size_t row = (first + i) / tile.num_heads;
      const size_t head = (first + i) % tile.num_heads;
      const float* q = tile.q + row * tile.row_stride + head * tile.head_dim;
      for (size_t e = 0; e < tile.head_dim; ++e) {
        group[e * count + i] = q[e] * scale;
      }
    }
  });
}

// scores[position of the block] -> weights, for positions [begin, end), which
// is not empty. Lanes beside them become 0.
HWY_INLINE void SoftmaxOfBlock(float* HWY_RESTRICT scores, size_t begin,
                               size_t end, float* HWY_RESTRICT partial) {
  const float lowest = -std::numeric_limits<float>::infinity();
  const size_t first = begin / 16 * 16;
  const size_t last = (end + 15) / 16 * 16;
  std::fill(scores + first, scores + begin, lowest);
  std::fill(scores + end, scores + last, lowest);
  F32x16 largest = Load16(scores + first);
  for (size_t p = first + 16; p < last; p += 16) {
    largest = Max16(largest, Load16(scores + p));
  }
  const float max = ReduceMax16(largest);
  // Where all scores are -inf all weights are 0, in this block.
  const F32x16 base = Set16(max == lowest ? 0.0f : max);
  F32x16 sum = Zero16();
  for (size_t p = first; p < last; p += 16) {
    const F32x16 weight = Exp16(Sub16(Load16(scores + p), base));
    Store16(weight, scores + p);
    sum = Add16(sum, weight);
  }
  partial[kPartialMax] = max;
  partial[kPartialSum] = ReduceAdd16(sum);
}

// The visible part of one block for a group of queries, whose rows may see
// different parts of it.
template <KvType kType, size_t kQueries>
class GroupInBlock {
 public:
  // packed: [head_dim, kQueries]; partials: [kQueries, PartialFloats]
  GroupInBlock(const QueryTile& tile, size_t first_query, const float* packed,
               const KvHeadView& kv, size_t block, float* partials)
      : head_dim_(tile.head_dim),
        stride_(PartialFloats(tile.head_dim)),
        packed_(packed),
        keys_(kv.keys),
        values_(kv.values),
        partials_(partials) {
    const size_t block_begin = block * kAttentionBlock;
    for (size_t q = 0; q < kQueries; ++q) {
      range_[q] = VisibleInBlock(
          tile.ranges[(first_query + q) / tile.num_heads], block_begin);
      union_.begin = std::min(union_.begin, range_[q].begin);
      union_.end = std::max(union_.end, range_[q].end);
      common_.begin = std::max(common_.begin, range_[q].begin);
      common_.end = std::min(common_.end, range_[q].end);
    }
  }

  void Run() {
    if (union_.begin >= union_.end) return;
    Score();
    for (size_t q = 0; q < kQueries; ++q) {
      float* partial = partials_ + q * stride_;
      std::fill(partial, partial + stride_, 0.0f);
      if (range_[q].begin >= range_[q].end) continue;
      SoftmaxOfBlock(weights_[q], range_[q].begin, range_[q].end, partial);
    }
    AddVisibleValues();
  }

 private:
  void Score() {
    const size_t tile_bytes = KvTileBytes(kType, head_dim_);
    for (size_t t = union_.begin / kKvTilePositions;
         t * kKvTilePositions < union_.end; ++t) {
      ScoreTile<kType, kQueries, kAttentionBlock>(
          packed_, keys_ + t * tile_bytes, head_dim_,
          weights_[0] + t * kKvTilePositions);
    }
  }

  // What all see is read once; what is before and behind it, row by row. A
  // position that a row does not see is not even multiplied by 0.
  void AddVisibleValues() {
    if constexpr (kQueries == 1) {
      AddValuesOf(0, range_[0].begin, range_[0].end);
    } else {
      const bool shared = common_.begin < common_.end;
      for (size_t q = 0; q < kQueries; ++q) {
        AddValuesOf(q, range_[q].begin, shared ? common_.begin : range_[q].end);
      }
      if (!shared) return;
      AddValues<kType, kQueries, kAttentionBlock>(Sums(0), common_);
      for (size_t q = 0; q < kQueries; ++q) {
        AddValuesOf(q, common_.end, range_[q].end);
      }
    }
  }

  HWY_NOINLINE void AddValuesOf(size_t q, size_t begin, size_t end) {
    if (begin >= end) return;
    AddValues<kType, 1, kAttentionBlock>(Sums(q), {begin, end});
  }

  ValueSums Sums(size_t query) const {
    return {.weights = weights_[query],
            .tiles = values_,
            .head_dim = head_dim_,
            .values = partials_ + query * stride_ + kPartialValues,
            .stride = stride_};
  }

  size_t head_dim_;
  size_t stride_;
  const float* packed_;
  const std::byte* keys_;
  const std::byte* values_;
  float* partials_;
  PositionRange range_[kQueries];  // counted from the block's first position
  PositionRange union_ = {.begin = kAttentionBlock, .end = 0};
  PositionRange common_ = {.begin = 0, .end = kAttentionBlock};
  alignas(64) float weights_[kQueries][kAttentionBlock];  // first the scores
};

template <KvType kType>
void AttendBlockTyped(const QueryTile& tile, const float* packed,
                      const KvHeadView& kv, size_t block, float* partials) {
  ForEachGroup(tile, [&](size_t first, size_t count) {
    const auto run = [&]<size_t kQueries>() {
      GroupInBlock<kType, kQueries>(
          tile, first, packed + first * tile.head_dim, kv, block,
          partials + first * PartialFloats(tile.head_dim))
          .Run();
    };
    if (count == 1) return run.template operator()<1>();
    if (count == 2) return run.template operator()<2>();
    if (count == 4) return run.template operator()<4>();
    if constexpr (kMaxGroup == 8) return run.template operator()<8>();
  });
}

void AttendBlock(const QueryTile& tile, const float* packed,
                 const KvHeadView& kv, size_t block, float* partials) {
  switch (kv.type) {
    case KvType::kF32:
      return AttendBlockTyped<KvType::kF32>(tile, packed, kv, block, partials);
    case KvType::kF16:
      return AttendBlockTyped<KvType::kF16>(tile, packed, kv, block, partials);
    case KvType::kQ8:
      return AttendBlockTyped<KvType::kQ8>(tile, packed, kv, block, partials);
  }
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(PackQueries);
HWY_EXPORT(AttendBlock);

void PackQueries(const QueryTile& tile, float scale, float* packed) {
  HWY_DYNAMIC_DISPATCH(PackQueries)(tile, scale, packed);
}

void AttendBlock(const QueryTile& tile, const float* packed,
                 const KvHeadView& kv, size_t block, float* partials) {
  CHECK_EQ(tile.head_dim, kv.head_dim);
  HWY_DYNAMIC_DISPATCH(AttendBlock)(tile, packed, kv, block, partials);
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

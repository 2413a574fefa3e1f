// Weighted sums of values for a group of queries, with elements as lanes and
// positions in order.
//
// Include after hwy/highway.h, inside a file that foreach_target.h repeats.
#if defined(MUSTER_KERNELS_ATTENTION_VALUES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MUSTER_KERNELS_ATTENTION_VALUES_H_
#undef MUSTER_KERNELS_ATTENTION_VALUES_H_
#else
#define MUSTER_KERNELS_ATTENTION_VALUES_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/attention.h"
#include "kernels/attention_ahead.h"
#include "kernels/kv_tiles.h"
#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// Reads elements [first, first + 16 * n) of a tile's values, a slot at a time.
template <KvType kType>
struct ValueColumns {
  HWY_INLINE ValueColumns(const std::byte* tile, size_t head_dim, size_t first)
      : tile_(tile), row_(PaddedHeadDim(head_dim)), first_(first) {}
  HWY_INLINE F32x16 Load(size_t slot, size_t vector) const {
    const size_t at = slot * row_ + first_ + 16 * vector;
    if constexpr (kType == KvType::kF32) {
      return Load16(reinterpret_cast<const float*>(tile_) + at);
    } else {
      return LoadF16x16(reinterpret_cast<const uint16_t*>(tile_) + at);
    }
  }

 private:
  const std::byte* tile_;
  size_t row_;
  size_t first_;
};

template <>
struct ValueColumns<KvType::kQ8> {
  static constexpr size_t kMaxGroups = 2;  // of 32 elements: 4 vectors
  HWY_INLINE ValueColumns(const std::byte* tile, size_t head_dim, size_t first)
      : codes_(reinterpret_cast<const int8_t*>(tile) + first),
        head_dim_(head_dim),
        odd_(first / 16 % 2) {
    const auto* scales =
        reinterpret_cast<const uint16_t*>(tile + kKvTilePositions * head_dim);
    const size_t groups = std::min(kMaxGroups, head_dim / 32 - first / 32);
    for (size_t g = 0; g < groups; ++g) {
      for (size_t slot = 0; slot < kKvTilePositions; slot += 16) {
        Store16(LoadF16x16(scales + (first / 32 + g) * kKvTilePositions + slot),
                scales_[g] + slot);
      }
    }
  }
  HWY_INLINE F32x16 Load(size_t slot, size_t vector) const {
    return Mul16(LoadI8x16(codes_ + slot * head_dim_ + 16 * vector),
                 Set16(scales_[(odd_ + vector) / 2][slot]));  // exact
  }

 private:
  const int8_t* codes_;
  size_t head_dim_;
  size_t odd_;  // 1: the first vector is the upper half of its group
  alignas(64) float scales_[kMaxGroups][kKvTilePositions];
};

// A group's sums over one block, and where they read and write.
struct ValueSums {
  const float* weights;    // of position p of query q: [q * kStride + p]
  const std::byte* tiles;  // of values, from the block's first position
  size_t head_dim;
  float* values;  // of query q: [q * stride + element]
  size_t stride;
  const std::byte* ahead;  // memory that is wanted next: a block's keys
};

// values[element] += weight * v_p[element] for positions p in [begin, end) and
// 16 * kVectors elements from `first`. Sums stay in registers all the way.
template <KvType kType, size_t kQueries, size_t kStride, size_t kVectors>
HWY_INLINE void AddValueColumns(const ValueSums& of, PositionRange range,
                                size_t first) {
  const float* HWY_RESTRICT weights = of.weights;
  float* HWY_RESTRICT values = of.values;
  const size_t stride = of.stride;
  F32x16 sum[kQueries][kVectors];
  for (size_t q = 0; q < kQueries; ++q) {
    for (size_t v = 0; v < kVectors; ++v) {
      sum[q][v] = Load16(values + q * stride + first + 16 * v);
    }
  }
  const size_t tile_bytes = KvTileBytes(kType, of.head_dim);
  const size_t end = range.end;
  for (size_t p = range.begin; p < end;) {
    const size_t tile = p / kKvTilePositions;
    const size_t tile_end = std::min(end, (tile + 1) * kKvTilePositions);
    const ValueColumns<kType> columns(of.tiles + tile * tile_bytes, of.head_dim,
                                      first);
    for (; p < tile_end; ++p) {
      FetchAhead<kType>(of.ahead, first * kStride + p * 16 * kVectors,
                        16 * kVectors);
      F32x16 value[kVectors];
      for (size_t v = 0; v < kVectors; ++v) {
        value[v] = columns.Load(p % kKvTilePositions, v);
      }
      for (size_t q = 0; q < kQueries; ++q) {
        const F32x16 weight = Set16(weights[q * kStride + p]);
        for (size_t v = 0; v < kVectors; ++v) {
          sum[q][v] = MulAdd16(weight, value[v], sum[q][v]);
        }
      }
    }
  }
  for (size_t q = 0; q < kQueries; ++q) {
    for (size_t v = 0; v < kVectors; ++v) {
      Store16(sum[q][v], values + q * stride + first + 16 * v);
    }
  }
}

// The same for all elements from `first` on: as many vectors at once as leave
// room for the sums in registers, then fewer.
template <KvType kType, size_t kQueries, size_t kStride,
          size_t kVectors = std::min<size_t>(4,
                                             (kParts == 1 ? 16 : 4) / kQueries)>
HWY_INLINE void AddValues(const ValueSums& of, PositionRange range,
                          size_t first = 0) {
  for (; first + 16 * kVectors <= PaddedHeadDim(of.head_dim);
       first += 16 * kVectors) {
    AddValueColumns<kType, kQueries, kStride, kVectors>(of, range, first);
  }
  if constexpr (kVectors > 1) {
    AddValues<kType, kQueries, kStride, kVectors / 2>(of, range, first);
  }
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle

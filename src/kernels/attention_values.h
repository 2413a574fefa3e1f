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

// Elements in a vector, and vectors in a column.
inline constexpr size_t kVector = 16;
inline constexpr size_t kColumnVectors = kKvColumn / kVector;

// Where a vector of a slot lies in a tile, in elements. Places add up where
// one of two vectors is the first of its column.
HWY_INLINE constexpr size_t VectorAt(size_t slot, size_t vector) {
  return (vector / kColumnVectors * kKvTilePositions + slot) * kKvColumn +
         vector % kColumnVectors * kVector;
}

// Reads vectors [first, first + kVectors) of a tile's values, a slot at a time.
template <KvType kType, size_t kVectors>
struct ValueVectors {
  HWY_INLINE ValueVectors(const std::byte* tile, size_t /*head_dim*/,
                          size_t first)
      : tile_(tile), first_(VectorAt(0, first)) {}
  HWY_INLINE F32x16 Load(size_t slot, size_t vector) const {
    const size_t at = first_ + VectorAt(slot, vector);
    if constexpr (kType == KvType::kF32) {
      return Load16(reinterpret_cast<const float*>(tile_) + at);
    } else {
      return LoadF16x16(reinterpret_cast<const uint16_t*>(tile_) + at);
    }
  }

 private:
  const std::byte* tile_;
  size_t first_;
};

template <size_t kVectors>
struct ValueVectors<KvType::kQ8, kVectors> {
  static_assert(kKvColumn == 32);  // elements that share a scale: a group
  static constexpr size_t kGroups =
      (kVectors + kColumnVectors - 1) / kColumnVectors;
  HWY_INLINE ValueVectors(const std::byte* tile, size_t head_dim, size_t first)
      : codes_(reinterpret_cast<const int8_t*>(tile) + VectorAt(0, first)) {
    const auto* scales =
        reinterpret_cast<const uint16_t*>(tile + kKvTilePositions * head_dim);
    const size_t group = first / kColumnVectors;
    for (size_t g = 0; g < kGroups; ++g) {
      for (size_t slot = 0; slot < kKvTilePositions; slot += 16) {
        Store16(LoadF16x16(scales + (group + g) * kKvTilePositions + slot),
                scales_[g] + slot);
      }
    }
  }
  HWY_INLINE F32x16 Load(size_t slot, size_t vector) const {
    return Mul16(LoadI8x16(codes_ + VectorAt(slot, vector)),
                 Set16(scales_[vector / kColumnVectors][slot]));  // exact
  }

 private:
  const int8_t* codes_;
  alignas(64) float scales_[kGroups][kKvTilePositions];
};

// A group's sums over one block, and where they read and write.
struct ValueSums {
  const float* weights;    // of position p of query q: [q * kStride + p]
  const std::byte* tiles;  // of values, from the block's first position
  size_t head_dim;
  float* values;  // of query q: [q * stride + element]
  size_t stride;
};

// values[element] += weight * v_p[element] for positions p in [begin, end) of
// one tile and kVectors vectors from `first` on. Sums stay in registers.
template <KvType kType, size_t kQueries, size_t kStride, size_t kVectors>
HWY_INLINE void AddValueVectors(const ValueSums& of, const std::byte* tile,
                                PositionRange range, size_t first) {
  const float* HWY_RESTRICT weights = of.weights;
  float* HWY_RESTRICT values = of.values + first * kVector;
  const size_t stride = of.stride;
  F32x16 sum[kQueries][kVectors];
  for (size_t q = 0; q < kQueries; ++q) {
    for (size_t v = 0; v < kVectors; ++v) {
      sum[q][v] = Load16(values + q * stride + v * kVector);
    }
  }
  const ValueVectors<kType, kVectors> vectors(tile, of.head_dim, first);
  for (size_t p = range.begin; p < range.end; ++p) {
    const size_t slot = p % kKvTilePositions;
    if constexpr (kVectors >= kColumnVectors) {
      for (size_t v = 0; v < kVectors; v += kColumnVectors) {
        ReadAhead<kType>(tile, VectorAt(0, first) + VectorAt(slot, v),
                         kKvColumn);
      }
    }
    F32x16 value[kVectors];
    for (size_t v = 0; v < kVectors; ++v) {
      value[v] = vectors.Load(slot, v);
    }
    for (size_t q = 0; q < kQueries; ++q) {
      const F32x16 weight = Set16(weights[q * kStride + p]);
      for (size_t v = 0; v < kVectors; ++v) {
        sum[q][v] = MulAdd16(weight, value[v], sum[q][v]);
      }
    }
  }
  for (size_t q = 0; q < kQueries; ++q) {
    for (size_t v = 0; v < kVectors; ++v) {
      Store16(sum[q][v], values + q * stride + v * kVector);
    }
  }
}

// The same for all vectors from `first` on: as many at once as leave room for
// the sums in registers, then fewer.
template <KvType kType, size_t kQueries, size_t kStride, size_t kVectors>
HWY_INLINE void AddTileValues(const ValueSums& of, const std::byte* tile,
                              PositionRange range, size_t first) {
  const size_t num_vectors = PaddedHeadDim(of.head_dim) / kVector;
  for (; first + kVectors <= num_vectors; first += kVectors) {
    AddValueVectors<kType, kQueries, kStride, kVectors>(of, tile, range, first);
  }
  if constexpr (kVectors > kColumnVectors) {
    AddTileValues<kType, kQueries, kStride, kVectors / 2>(of, tile, range,
                                                          first);
  }
}

// The same for positions of several tiles: one after the other, as they lie in
// memory.
template <KvType kType, size_t kQueries, size_t kStride>
HWY_INLINE void AddValues(const ValueSums& of, PositionRange range) {
  constexpr size_t kVectors =
      std::min<size_t>(4, (kParts == 1 ? 16 : 4) / kQueries);
  const size_t tile_bytes = KvTileBytes(kType, of.head_dim);
  for (size_t p = range.begin; p < range.end;) {
    const size_t tile = p / kKvTilePositions;
    const size_t end = std::min(range.end, (tile + 1) * kKvTilePositions);
    AddTileValues<kType, kQueries, kStride, kVectors>(
        of, of.tiles + tile * tile_bytes, {p, end}, 0);
    p = end;
  }
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle

// Scores: a group of queries times a tile of keys, with positions as lanes.
// One sum a lane, elements in order: there is nothing to add up across lanes.
//
// Include after hwy/highway.h, inside a file that foreach_target.h repeats.
#if defined(MUSTER_KERNELS_ATTENTION_KEYS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MUSTER_KERNELS_ATTENTION_KEYS_H_
#undef MUSTER_KERNELS_ATTENTION_KEYS_H_
#else
#define MUSTER_KERNELS_ATTENTION_KEYS_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/attention_ahead.h"
#include "kernels/kv_tiles.h"
#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// Reads 16 slots of the keys' elements [first, first + 32), from slot `slot`.
template <KvType kType>
struct KeyGroup {
  HWY_INLINE KeyGroup(const std::byte* tile, size_t /*head_dim*/,
                      size_t /*first*/, size_t slot)
      : tile_(tile), slot_(slot) {}
  HWY_INLINE F32x16 Load(size_t i) const {
    const size_t at = i * kKvTilePositions + slot_;
    if constexpr (kType == KvType::kF32) {
      return Load16(reinterpret_cast<const float*>(tile_) + at);
    } else {
      return LoadF16x16(reinterpret_cast<const uint16_t*>(tile_) + at);
    }
  }

 private:
  const std::byte* tile_;
  size_t slot_;
};

template <>
struct KeyGroup<KvType::kQ8> {
  HWY_INLINE KeyGroup(const std::byte* tile, size_t head_dim, size_t first,
                      size_t slot)
      : codes_(reinterpret_cast<const int8_t*>(tile) + slot),
        scales_(LoadF16x16(reinterpret_cast<const uint16_t*>(
                               tile + kKvTilePositions * head_dim) +
                           first + slot)) {}
  HWY_INLINE F32x16 Load(size_t i) const {
    return Mul16(LoadI8x16(codes_ + i * kKvTilePositions), scales_);  // exact
  }

 private:
  const int8_t* codes_;
  F32x16 scales_;  // of these 32 elements, a lane each: [head_dim / 32, slots]
};

// scores[query * kStride + slot] for kQueries queries and all slots of a tile.
// packed: [head_dim, kQueries].
template <KvType kType, size_t kQueries, size_t kStride>
HWY_INLINE void ScoreTile(const float* HWY_RESTRICT packed,
                          const std::byte* HWY_RESTRICT tile, size_t head_dim,
                          float* HWY_RESTRICT scores) {
  // As many slots at once as leave room for the sums in registers.
  constexpr size_t kVectors = kParts == 1 ? 2 : 1;
  constexpr size_t kElements = 32;  // that share a scale
  for (size_t slot = 0; slot < kKvTilePositions; slot += 16 * kVectors) {
    F32x16 sum[kQueries][kVectors];
    for (auto& of_query : sum) {
      for (F32x16& s : of_query) s = Zero16();
    }
    for (size_t first = 0; first < head_dim; first += kElements) {
      const KeyGroup<kType> low(tile, head_dim, first, slot);
      const KeyGroup<kType> high(tile, head_dim, first,
                                 slot + 16 * (kVectors - 1));
      const size_t end = std::min(head_dim, first + kElements);
      for (size_t i = first; i < end; ++i) {
        if (slot == 0) {
          ReadAhead<kType>(tile, i * kKvTilePositions, kKvTilePositions);
        }
        F32x16 key[kVectors];
        key[0] = low.Load(i);
        if constexpr (kVectors == 2) key[1] = high.Load(i);
        for (size_t q = 0; q < kQueries; ++q) {
          const F32x16 query = Set16(packed[i * kQueries + q]);
          for (size_t v = 0; v < kVectors; ++v) {
            sum[q][v] = MulAdd16(query, key[v], sum[q][v]);
          }
        }
      }
    }
    for (size_t q = 0; q < kQueries; ++q) {
      for (size_t v = 0; v < kVectors; ++v) {
        Store16(sum[q][v], scores + q * kStride + slot + 16 * v);
      }
    }
  }
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle

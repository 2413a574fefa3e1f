// How the keys and values of past positions are stored: in tiles of 32
// positions, so that attention reads keys with positions as lanes and values
// with elements as lanes, each in the order of memory: only then does a core's
// own prefetcher bring them at the rate of DRAM.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::kernels {

// How one element is stored.
enum class KvType : uint8_t {
  kF32,
  kF16,  // rounded to nearest even
  kQ8,   // 32 int8 share a float16 scale, as in Q8_0; head_dim % 32 == 0
};

inline constexpr size_t kKvTilePositions = 32;
inline constexpr size_t kKvColumn = 32;  // elements of a value side by side

// Tiles of one KV head, one behind the other. Of the positions that they hold,
// number p stands in tile p / 32, slot p % 32:
//   a tile of keys     [head_dim, 32 slots]
//   a tile of values   [padded dim / 32, 32 slots, 32 elements]
// elements first, then Q8's scales, for both: [head_dim / 32, 32 slots].
// Slots that nothing was stored in may hold anything.
struct KvHeadView {
  KvType type = KvType::kF16;
  const std::byte* keys = nullptr;
  const std::byte* values = nullptr;
  size_t head_dim = 0;
};

// A value is padded to whole columns.
constexpr size_t PaddedHeadDim(size_t head_dim) {
  return (head_dim + kKvColumn - 1) / kKvColumn * kKvColumn;
}

// Bytes of one tile of keys or of values: both are padded alike.
size_t KvTileBytes(KvType type, size_t head_dim);

// A slot's share of it.
inline size_t KvVectorBytes(KvType type, size_t head_dim) {
  return KvTileBytes(type, head_dim) / kKvTilePositions;
}

// Stores one head's key or value in a slot of its tile.   x: [head_dim]
// F16 beyond 65504 becomes infinity. A group of 32 elements of Q8 that holds
// NaN, infinity or more than its scale can reach becomes NaN as a whole.
// Thread-safe for different slots. REQUIRES: slot < kKvTilePositions.
void StoreKey(KvType type, const float* x, size_t head_dim, size_t slot,
              std::byte* tile);
void StoreValue(KvType type, const float* x, size_t head_dim, size_t slot,
                std::byte* tile);

// What a slot holds, exactly. For references and tests.   out: [head_dim]
void LoadKey(KvType type, const std::byte* tile, size_t head_dim, size_t slot,
             float* out);
void LoadValue(KvType type, const std::byte* tile, size_t head_dim, size_t slot,
               float* out);

}  // namespace muster::kernels

#include "kernels/kv_tiles.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "tensor/blocks.h"
#include "tensor/float16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/kv_tiles.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

void EncodeHalves(const float* HWY_RESTRICT x, size_t count,
                  uint16_t* HWY_RESTRICT out) {
  size_t i = 0;
#if HWY_TARGET <= HWY_AVX2  // where the hardware rounds to nearest even
  for (; i + 16 <= count; i += 16) {
    StoreF16x16(Load16(x + i), reinterpret_cast<std::byte*>(out + i));
  }
#endif
  for (; i < count; ++i) out[i] = F32ToF16(x[i]);
}

// Scale = max|x| / 127 rounded to half; values to nearest even. A block with
// NaN, infinity or more than halves reach has no scale: all of it becomes NaN.
// Plain loops, which the compiler vectorises for the target.
void EncodeQ8(const float* HWY_RESTRICT x, BlockQ8_0* HWY_RESTRICT block) {
  uint32_t largest = 0;  // of the magnitudes' bits: NaN is above infinity
  for (size_t i = 0; i < 32; ++i) {
    largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7FFFFFFFu);
  }
  block->d = F32ToF16(std::bit_cast<float>(largest) / 127.0f);
  const float d = F16ToF32(block->d);
  if (d == 0.0f || !std::isfinite(d)) {
    std::memset(block->qs, 0, sizeof(block->qs));
    return;
  }
  const float inverse = 1.0f / d;
  for (size_t i = 0; i < 32; ++i) {
    // Adding and taking away 1.5 * 2^23 rounds to nearest even.
    const float scaled = std::min(127.0f, std::max(-127.0f, x[i] * inverse));
    const float rounded = (scaled + 12582912.0f) - 12582912.0f;
    block->qs[i] = static_cast<int8_t>(static_cast<int>(rounded));
  }
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(EncodeHalves);
HWY_EXPORT(EncodeQ8);

namespace {

constexpr size_t kGroup = 32;  // elements that share a scale in Q8

// Where the elements of a slot lie: those of a column at `stride`, column after
// column.
struct SlotPlace {
  size_t first;  // element 0
  size_t stride;

  size_t Of(size_t element) const {
    return first + element / kKvColumn * (kKvColumn * kKvTilePositions) +
           element % kKvColumn * stride;
  }
};

SlotPlace KeyPlace(size_t slot) {
  return {.first = slot, .stride = kKvTilePositions};
}
SlotPlace ValuePlace(size_t slot) {
  return {.first = slot * kKvColumn, .stride = 1};
}

// Q8's scales stand behind all elements of a tile.
uint16_t* Scales(std::byte* tile, size_t head_dim) {
  return reinterpret_cast<uint16_t*>(tile + kKvTilePositions * head_dim);
}
const uint16_t* Scales(const std::byte* tile, size_t head_dim) {
  return reinterpret_cast<const uint16_t*>(tile + kKvTilePositions * head_dim);
}

void StoreFloats(const float* x, size_t head_dim, SlotPlace place,
                 std::byte* tile) {
  float* out = reinterpret_cast<float*>(tile);
  for (size_t i = 0; i < head_dim; ++i) out[place.Of(i)] = x[i];
}

void StoreHalves(const float* x, size_t head_dim, SlotPlace place,
                 std::byte* tile) {
  uint16_t* out = reinterpret_cast<uint16_t*>(tile);
  uint16_t halves[kGroup];
  for (size_t at = 0; at < head_dim; at += kGroup) {
    const size_t count = std::min(kGroup, head_dim - at);
    HWY_DYNAMIC_DISPATCH(EncodeHalves)(x + at, count, halves);
    for (size_t i = 0; i < count; ++i) out[place.Of(at + i)] = halves[i];
  }
}

void StoreQ8(const float* x, size_t head_dim, size_t slot, SlotPlace place,
             std::byte* tile) {
  int8_t* out = reinterpret_cast<int8_t*>(tile);
  uint16_t* scales = Scales(tile, head_dim) + slot;
  BlockQ8_0 block;
  for (size_t group = 0; group < head_dim / kGroup; ++group) {
    HWY_DYNAMIC_DISPATCH(EncodeQ8)(x + group * kGroup, &block);
    scales[group * kKvTilePositions] = block.d;
    for (size_t i = 0; i < kGroup; ++i) {
      out[place.Of(group * kGroup + i)] = block.qs[i];
    }
  }
}

void Store(KvType type, const float* x, size_t head_dim, size_t slot,
           SlotPlace place, std::byte* tile) {
  switch (type) {
    case KvType::kF32:
      return StoreFloats(x, head_dim, place, tile);
    case KvType::kF16:
      return StoreHalves(x, head_dim, place, tile);
    case KvType::kQ8:
      return StoreQ8(x, head_dim, slot, place, tile);
  }
}

float LoadElement(KvType type, const std::byte* tile, size_t head_dim,
                  size_t slot, SlotPlace place, size_t i) {
  const size_t at = place.Of(i);
  switch (type) {
    case KvType::kF32:
      return reinterpret_cast<const float*>(tile)[at];
    case KvType::kF16:
      return F16ToF32(reinterpret_cast<const uint16_t*>(tile)[at]);
    case KvType::kQ8:
      return static_cast<float>(reinterpret_cast<const int8_t*>(tile)[at]) *
             F16ToF32(
                 Scales(tile, head_dim)[i / kGroup * kKvTilePositions + slot]);
  }
  return 0;
}

}  // namespace

size_t KvTileBytes(KvType type, size_t head_dim) {
  const size_t elements = kKvTilePositions * PaddedHeadDim(head_dim);
  switch (type) {
    case KvType::kF32:
      return elements * sizeof(float);
    case KvType::kF16:
      return elements * sizeof(uint16_t);
    case KvType::kQ8:
      CHECK_EQ(head_dim % kGroup, 0u);
      return elements + elements / kGroup * sizeof(uint16_t);
  }
  return 0;
}

void StoreKey(KvType type, const float* x, size_t head_dim, size_t slot,
              std::byte* tile) {
  Store(type, x, head_dim, slot, KeyPlace(slot), tile);
}

void StoreValue(KvType type, const float* x, size_t head_dim, size_t slot,
                std::byte* tile) {
  Store(type, x, head_dim, slot, ValuePlace(slot), tile);
}

void LoadKey(KvType type, const std::byte* tile, size_t head_dim, size_t slot,
             float* out) {
  for (size_t i = 0; i < head_dim; ++i) {
    out[i] = LoadElement(type, tile, head_dim, slot, KeyPlace(slot), i);
  }
}

void LoadValue(KvType type, const std::byte* tile, size_t head_dim, size_t slot,
               float* out) {
  for (size_t i = 0; i < head_dim; ++i) {
    out[i] = LoadElement(type, tile, head_dim, slot, ValuePlace(slot), i);
  }
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

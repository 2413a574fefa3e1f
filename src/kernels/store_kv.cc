#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/attention.h"
#include "tensor/blocks.h"
#include "tensor/dtype.h"
#include "tensor/float16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/store_kv.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

void StoreHalves(const float* HWY_RESTRICT x, size_t head_dim,
                 std::byte* HWY_RESTRICT out) {
  size_t i = 0;
#if HWY_TARGET <= HWY_AVX2  // where the hardware rounds to nearest even
  for (; i + 16 <= head_dim; i += 16) {
    StoreF16x16(Load16(x + i), out + i * sizeof(uint16_t));
  }
#endif
  for (; i < head_dim; ++i) {
    const uint16_t half = F32ToF16(x[i]);
    std::memcpy(out + i * sizeof(half), &half, sizeof(half));
  }
}

// Scale = max|x| / 127 rounded to half; values to nearest even. A block with
// NaN, infinity or more than halves reach has no scale: all of it becomes NaN.
// Plain loops, which the compiler vectorises for the target.
HWY_INLINE void StoreQ8Block(const float* HWY_RESTRICT x,
                             BlockQ8_0* HWY_RESTRICT block) {
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

void StoreQ8(const float* HWY_RESTRICT x, size_t head_dim,
             std::byte* HWY_RESTRICT out) {
  auto* blocks = reinterpret_cast<BlockQ8_0*>(out);
  for (size_t b = 0; b < head_dim / 32; ++b) {
    StoreQ8Block(x + b * 32, blocks + b);
  }
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(StoreHalves);
HWY_EXPORT(StoreQ8);

size_t KvVectorBytes(KvType type, size_t head_dim) {
  switch (type) {
    case KvType::kF32:
      return head_dim * sizeof(float);
    case KvType::kF16:
      return head_dim * sizeof(uint16_t);
    case KvType::kQ8:
      return SizeBytes(DType::kQ8_0, head_dim);
  }
  return 0;
}

void StoreKv(KvType type, const float* x, size_t head_dim, std::byte* out) {
  switch (type) {
    case KvType::kF32:
      std::memcpy(out, x, head_dim * sizeof(float));
      return;
    case KvType::kF16:
      return HWY_DYNAMIC_DISPATCH(StoreHalves)(x, head_dim, out);
    case KvType::kQ8:
      return HWY_DYNAMIC_DISPATCH(StoreQ8)(x, head_dim, out);
  }
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

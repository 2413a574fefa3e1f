// Dot products of rows of float weights (F32, F16) with float activations. One
// order for every shape of block below: 16 lanes, lane l takes columns l, l +
// 16, ... in turn, and a fixed tree adds the lanes.
#if defined(MUSTER_KERNELS_FLOAT_DOT_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MUSTER_KERNELS_FLOAT_DOT_H_
#undef MUSTER_KERNELS_FLOAT_DOT_H_
#else
#define MUSTER_KERNELS_FLOAT_DOT_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/simd.h"
#include "tensor/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

template <DType kType>
inline constexpr size_t kWordBytes = kType == DType::kF32 ? 4 : 2;

// Elements [c, c + 16) of a row.
template <DType kType>
HWY_INLINE F32x16 LoadWeights(const std::byte* row, size_t c) {
  const std::byte* at = row + c * kWordBytes<kType>;
  if constexpr (kType == DType::kF32) {
    return Load16(reinterpret_cast<const float*>(at));
  } else {
    return LoadF16x16(reinterpret_cast<const uint16_t*>(at));
  }
}

// Elements [c, c + left), zeros in the other lanes. REQUIRES: left < 16.
template <DType kType>
HWY_INLINE F32x16 LoadLastWeights(const std::byte* row, size_t c, size_t left) {
  std::byte padded[16 * kWordBytes<kType>] = {};
  std::memcpy(padded, row + c * kWordBytes<kType>, left * kWordBytes<kType>);
  return LoadWeights<kType>(padded, 0);
}

// Rows and tokens whose sums fit in registers beside what they read.
inline constexpr size_t kFloatRows = kParts == 1 ? 4 : 2;
inline constexpr size_t kFloatTokens = kParts == 1 ? 4 : 2;

// out[t * out_stride + r] = rows[r] . x[t]
template <DType kType, size_t kRows, size_t kTokens>
HWY_INLINE void DotFloatBlock(const std::byte* const* rows,
                              const float* const* x, size_t cols, float* out,
                              size_t out_stride) {
  F32x16 sums[kRows][kTokens];
  for (auto& row : sums) {
    for (F32x16& sum : row) sum = Zero16();
  }
  const size_t whole = cols / 16 * 16;
  for (size_t c = 0; c < whole; c += 16) {
    F32x16 w[kRows];
    for (size_t r = 0; r < kRows; ++r) w[r] = LoadWeights<kType>(rows[r], c);
    for (size_t t = 0; t < kTokens; ++t) {
      const F32x16 v = Load16(x[t] + c);
      for (size_t r = 0; r < kRows; ++r) {
        sums[r][t] = MulAdd16(w[r], v, sums[r][t]);
      }
    }
  }
  if (whole < cols) {
    const size_t left = cols - whole;
    for (size_t t = 0; t < kTokens; ++t) {
      const F32x16 v = LoadPartial16(x[t] + whole, left);
      for (size_t r = 0; r < kRows; ++r) {
        sums[r][t] = MulAdd16(LoadLastWeights<kType>(rows[r], whole, left), v,
                              sums[r][t]);
      }
    }
  }
  for (size_t t = 0; t < kTokens; ++t) {
    for (size_t r = 0; r < kRows; ++r) {
      out[t * out_stride + r] = ReduceAdd16(sums[r][t]);
    }
  }
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle

#include "kernels/activations.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activations.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// One group of 32. Plain loops: the compiler vectorises them for the target,
// and none of the operations depends on the order.
HWY_INLINE float QuantizeGroup(const float* HWY_RESTRICT x,
                               int8_t* HWY_RESTRICT q,
                               int16_t* HWY_RESTRICT sums) {
  float largest = 0;
  float zero = 0;  // NaN once an element is NaN or infinite
  for (size_t i = 0; i < kActivationGroup; ++i) {
    const float magnitude = std::fabs(x[i]);
    largest = magnitude > largest ? magnitude : largest;
    zero += x[i] * 0.0f;
  }
  const float scale = largest / 127.0f;
  // A scale too small to invert stands for a group of zeros.
  const float inverse = scale > 1e-30f ? 1.0f / scale : 0.0f;
  int sum[2] = {0, 0};
  for (size_t half = 0; half < 2; ++half) {
    for (size_t i = half * 16; i < half * 16 + 16; ++i) {
      // Adding and taking away 1.5 * 2^23 rounds to nearest even.
      const float rounded = (x[i] * inverse + 12582912.0f) - 12582912.0f;
      const int n =
          static_cast<int>(std::min(127.0f, std::max(-127.0f, rounded)));
      q[i] = static_cast<int8_t>(n);
      sum[half] += n;
    }
    sums[half] = static_cast<int16_t>(sum[half]);
  }
  // What is not finite must not vanish: its group becomes NaN as a whole.
  return (inverse == 0.0f ? 0.0f : scale) + zero;
}

void QuantizeRow(const float* HWY_RESTRICT x, size_t cols, size_t padded_cols,
                 int8_t* HWY_RESTRICT q, float* HWY_RESTRICT scales,
                 int16_t* HWY_RESTRICT sums) {
  for (size_t i = 0; i < cols; i += kActivationGroup) {
    const float scale = QuantizeGroup(x + i, q + i, sums + i / 16);
    scales[i / 16] = scales[i / 16 + 1] = scale;
  }
  std::memset(q + cols, 0, padded_cols - cols);
  std::fill(scales + cols / 16, scales + padded_cols / 16, 0.0f);
  std::fill(sums + cols / 16, sums + padded_cols / 16, int16_t{0});
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(QuantizeRow);

namespace {

template <class T>
T* Room(AlignedBuffer& buffer, size_t count) {
  if (buffer.size_bytes() < count * sizeof(T)) {
    buffer = AlignedBuffer(count * sizeof(T));
  }
  return reinterpret_cast<T*>(buffer.data());
}

}  // namespace

bool ReadsQuantized(DType weight_type) {
  return Traits(weight_type).block_elements > 1;
}

ActivationView Activations::Set(const float* x, size_t num_rows, size_t cols,
                                bool quantize, ThreadPool& pool) {
  ActivationView view{.x = x, .num_rows = num_rows, .cols = cols};
  if (!quantize) return view;
  CHECK_EQ(cols % kActivationGroup, 0u);
  const size_t padded =
      (cols + kActivationBlock - 1) / kActivationBlock * kActivationBlock;
  int8_t* q = Room<int8_t>(q_, num_rows * padded);
  float* scales = Room<float>(scales_, num_rows * padded / 16);
  int16_t* sums = Room<int16_t>(sums_, num_rows * padded / 16);
  const auto quantize_row = HWY_DYNAMIC_DISPATCH(QuantizeRow);
  pool.ForEach(num_rows, [&](size_t row) {
    quantize_row(x + row * cols, cols, padded, q + row * padded,
                 scales + row * padded / 16, sums + row * padded / 16);
  });
  view.q = q;
  view.scales = scales;
  view.sums = sums;
  view.padded_cols = padded;
  return view;
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

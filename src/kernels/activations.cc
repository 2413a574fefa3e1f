#include "kernels/activations.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tensor/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activations.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// Plain loops: the compiler vectorises them for the target, and none of the
// operations depends on the order.
HWY_INLINE void QuantizeGroup(const float* HWY_RESTRICT x,
                              ActivationGroup* HWY_RESTRICT group) {
  float largest = 0;
  float zero = 0;  // NaN once an element is NaN or infinite
  for (size_t i = 0; i < kPanelGroup; ++i) {
    const float magnitude = std::fabs(x[i]);
    largest = magnitude > largest ? magnitude : largest;
    zero += x[i] * 0.0f;
  }
  const float scale = largest / 127.0f;
  // A scale too small to invert stands for a group of zeros.
  const float inverse = scale > 1e-30f ? 1.0f / scale : 0.0f;
  // What is not finite must not vanish: its group becomes NaN as a whole.
  group->scale = (inverse == 0.0f ? 0.0f : scale) + zero;
  for (size_t i = 0; i < kPanelGroup; ++i) {
    // Adding and taking away 1.5 * 2^23 rounds to nearest even.
    const float rounded = (x[i] * inverse + 12582912.0f) - 12582912.0f;
    group->q[i] = static_cast<int8_t>(
        static_cast<int>(std::min(127.0f, std::max(-127.0f, rounded))));
  }
  int sums[2] = {0, 0};
  for (size_t i = 0; i < 16; ++i) {
    sums[0] += group->q[i];
    sums[1] += group->q[i + 16];
  }
  for (size_t half = 0; half < 2; ++half) {
    group->minus_half_sums[half] = -sums[half];
    group->half_scaled_sums[half] =
        group->scale * static_cast<float>(sums[half]);
  }
  group->minus_sum = -(sums[0] + sums[1]);
  group->scaled_sum = group->scale * static_cast<float>(sums[0] + sums[1]);
  group->unused = 0;
}

void QuantizeRow(const float* x, size_t cols, ActivationGroup* groups) {
  for (size_t i = 0; i < cols / kPanelGroup; ++i) {
    QuantizeGroup(x + i * kPanelGroup, groups + i);
  }
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(QuantizeRow);

bool ReadsQuantized(DType weight_type) { return HasPanels(weight_type); }

void QuantizeGroups(const float* x, size_t cols, ActivationGroup* groups) {
  CHECK_EQ(cols % kPanelGroup, 0u);
  HWY_DYNAMIC_DISPATCH(QuantizeRow)(x, cols, groups);
}

ActivationView Activations::Reserve(size_t num_rows, size_t cols) {
  CHECK_EQ(cols % kPanelGroup, 0u);
  // The shortest block of a panel is two groups.
  const size_t num_groups = (cols / kPanelGroup + 1) / 2 * 2;
  const size_t size_bytes = num_rows * num_groups * sizeof(ActivationGroup);
  if (groups_.size_bytes() < size_bytes) groups_ = AlignedBuffer(size_bytes);
  if (num_groups != cols / kPanelGroup) {
    for (size_t row = 0; row < num_rows; ++row) {
      groups()[(row + 1) * num_groups - 1] = {};
    }
  }
  return {.groups = groups(),
          .num_rows = num_rows,
          .cols = cols,
          .num_groups = num_groups};
}

ActivationView Activations::Set(const float* x, size_t num_rows, size_t cols,
                                bool quantize, ThreadPool& pool) {
  if (!quantize) return {.x = x, .num_rows = num_rows, .cols = cols};
  ActivationView view = Reserve(num_rows, cols);
  pool.ForEach(num_rows, [&](size_t row) {
    QuantizeGroups(x + row * cols, cols, groups() + row * view.num_groups);
  });
  view.x = x;
  return view;
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

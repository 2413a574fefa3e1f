#include "kernels/activations.h"

#include <cmath>

#include "base/check.h"
#include "tensor/panels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activations.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// 16 floats to the nearest int8, ties to even, and the sum of those.
// REQUIRES: none is beyond int8 by as much as a half.
HWY_INLINE int RoundToBytes(const F32x16& x, int8_t* HWY_RESTRICT out) {
  const hn::Rebind<int8_t, FloatTag> d8;
  auto sum = hn::Zero(IntTag());
  for (size_t i = 0; i < kParts; ++i) {
    const auto rounded = hn::NearestInt(x.part[i]);
    sum = hn::Add(sum, rounded);
    hn::StoreU(hn::DemoteTo(d8, rounded), d8, out + i * kPartLanes);
  }
  return hn::GetLane(hn::SumOfLanes(IntTag(), sum));
}

HWY_INLINE void QuantizeGroup(const float* HWY_RESTRICT x,
                              ActivationGroup* HWY_RESTRICT group) {
  static_assert(kPanelGroup == 32);
  const F32x16 low = Load16(x), high = Load16(x + 16);
  const float largest = ReduceMax16(Max16(Abs16(low), Abs16(high)));
  // NaN once an element is NaN or infinite. That must not vanish: the group
  // becomes NaN as a whole.
  const F32x16 zero = Zero16();
  const float nothing = ReduceAdd16(Add16(Mul16(low, zero), Mul16(high, zero)));
  if (std::isnan(nothing)) {
    *group = {.scale = nothing,
              .scaled_sum = nothing,
              .half_scaled_sums = {nothing, nothing}};
    return;
  }
  const float scale = largest / 127.0f;
  // A scale too small to invert stands for a group of zeros.
  const bool is_zero = !(scale > 1e-30f);
  const F32x16 inverse = Set16(is_zero ? 0.0f : 1.0f / scale);
  group->scale = is_zero ? 0.0f : scale;
  const int sums[2] = {RoundToBytes(Mul16(low, inverse), group->q),
                       RoundToBytes(Mul16(high, inverse), group->q + 16)};
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

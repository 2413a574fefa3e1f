#include "kernels/activations.h"

#include <algorithm>
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

void RoundBFloats(const float* x, size_t n, uint16_t* out) {
  const hn::RebindToUnsigned<FloatTag> d32;
  const hn::Rebind<uint16_t, FloatTag> d16;
  const auto most_finite = hn::Set(d32, 0x7F800000u);
  size_t i = 0;
  for (; i + kPartLanes <= n; i += kPartLanes) {
    const auto bits = hn::BitCast(d32, hn::LoadU(FloatTag(), x + i));
    const auto high = hn::ShiftRight<16>(bits);
    const auto odd = hn::And(high, hn::Set(d32, 1));
    const auto rounded =
        hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7FFF))));
    const auto magnitude = hn::And(bits, hn::Set(d32, 0x7FFFFFFFu));
    const auto quiet = hn::Or(high, hn::Set(d32, 0x40));
    const auto words =
        hn::IfThenElse(hn::Gt(magnitude, most_finite), quiet, rounded);
    hn::StoreU(hn::TruncateTo(d16, words), d16, out + i);
  }
  for (; i < n; ++i) out[i] = F32ToBF16(x[i]);
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(QuantizeRow);
HWY_EXPORT(RoundBFloats);

ActivationForms& ActivationForms::operator|=(const ActivationForms& other) {
  floats |= other.floats;
  bfloats |= other.bfloats;
  groups |= other.groups;
  return *this;
}

ActivationForms FormRead(DType weight_type) {
  if (weight_type == DType::kBF16) return {.bfloats = true};
  if (IsQuantized(weight_type)) return {.groups = true};
  return {.floats = true};
}

void QuantizeGroups(const float* x, size_t cols, ActivationGroup* groups) {
  CHECK_EQ(cols % kPanelGroup, 0u);
  HWY_DYNAMIC_DISPATCH(QuantizeRow)(x, cols, groups);
}

void RoundToBFloats(const float* x, size_t n, uint16_t* out) {
  HWY_DYNAMIC_DISPATCH(RoundBFloats)(x, n, out);
}

void Activations::ReserveGroups(ActivationView& view) {
  CHECK_EQ(view.cols % kPanelGroup, 0u);
  // The shortest block of a panel is two groups.
  view.num_groups = (view.cols / kPanelGroup + 1) / 2 * 2;
  const size_t size_bytes =
      view.num_rows * view.num_groups * sizeof(ActivationGroup);
  if (groups_.size_bytes() < size_bytes) groups_ = AlignedBuffer(size_bytes);
  view.groups = groups();
  if (view.num_groups == view.cols / kPanelGroup) return;
  for (size_t row = 0; row < view.num_rows; ++row) {
    groups()[(row + 1) * view.num_groups - 1] = {};
  }
}

void Activations::ReserveBFloats(ActivationView& view) {
  // A cache line more than a row needs: rows of a power of two would all meet
  // in the same few places of a cache.
  view.bfloat_stride = PaddedBFloats(view.cols) + 64 / sizeof(uint16_t);
  const size_t size_bytes =
      view.num_rows * view.bfloat_stride * sizeof(uint16_t);
  if (bfloats_.size_bytes() < size_bytes) bfloats_ = AlignedBuffer(size_bytes);
  view.bfloats = bfloats();
  for (size_t row = 0; row < view.num_rows; ++row) {
    std::fill_n(bfloats() + row * view.bfloat_stride + view.cols,
                PaddedBFloats(view.cols) - view.cols, uint16_t{0});
  }
}

ActivationView Activations::Reserve(size_t num_rows, size_t cols,
                                    const ActivationForms& forms) {
  ActivationView view = {.num_rows = num_rows, .cols = cols};
  if (forms.groups) ReserveGroups(view);
  if (forms.bfloats) ReserveBFloats(view);
  return view;
}

ActivationView Activations::Set(const float* x, size_t num_rows, size_t cols,
                                const ActivationForms& forms,
                                ThreadPool& pool) {
  ActivationView view = Reserve(num_rows, cols, forms);
  view.x = x;
  if (!forms.groups && !forms.bfloats) return view;
  pool.ForEach(num_rows, [&](size_t row) {
    const float* from = x + row * cols;
    if (forms.groups) {
      QuantizeGroups(from, cols, groups() + row * view.num_groups);
    }
    if (forms.bfloats) {
      RoundToBFloats(from, cols, bfloats() + row * view.bfloat_stride);
    }
  });
  return view;
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

// A virtual vector of 16 floats, for code that Highway compiles once per
// instruction set: one AVX-512 register or two of AVX2. Kernels written on it
// give the same bits on each, because lane i is always lane i and every
// reduction is one fixed tree. (Below AVX2 multiply-adds round twice: that
// target exists to be a plain reference.)
//
// Include after hwy/highway.h, inside a file that foreach_target.h repeats.
#if defined(MUSTER_KERNELS_SIMD_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MUSTER_KERNELS_SIMD_H_
#undef MUSTER_KERNELS_SIMD_H_
#else
#define MUSTER_KERNELS_SIMD_H_
#endif

#include <cstddef>
#include <cstdint>
#include <limits>

#include "hwy/highway.h"
#include "tensor/float16.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using IntTag = hn::RebindToSigned<FloatTag>;
using FloatVec = hn::Vec<FloatTag>;
inline constexpr size_t kPartLanes = hn::MaxLanes(FloatTag());
inline constexpr size_t kParts = 16 / kPartLanes;

struct F32x16 {
  FloatVec part[kParts];
};

// Applies fn(part index) to every register; the compiler unrolls it.
template <class Fn>
HWY_INLINE F32x16 EachPart(const Fn& fn) {
  F32x16 out;
  for (size_t i = 0; i < kParts; ++i) out.part[i] = fn(i);
  return out;
}

HWY_INLINE float HalfToFloat(uint16_t half) {
#if HWY_TARGET <= HWY_AVX2
  return _cvtsh_ss(half);
#else
  return F16ToF32(half);
#endif
}

HWY_INLINE F32x16 Zero16() {
  return EachPart([](size_t) { return hn::Zero(FloatTag()); });
}
HWY_INLINE F32x16 Set16(float x) {
  return EachPart([&](size_t) { return hn::Set(FloatTag(), x); });
}
HWY_INLINE F32x16 Load16(const float* p) {
  return EachPart(
      [&](size_t i) { return hn::LoadU(FloatTag(), p + i * kPartLanes); });
}
HWY_INLINE void Store16(const F32x16& v, float* p) {
  for (size_t i = 0; i < kParts; ++i) {
    hn::StoreU(v.part[i], FloatTag(), p + i * kPartLanes);
  }
}
// The first n < 16 floats; `fill` in the other lanes.
HWY_INLINE F32x16 LoadPartial16(const float* p, size_t n, float fill = 0.0f) {
  alignas(64) float lanes[16];
  for (size_t i = 0; i < 16; ++i) lanes[i] = i < n ? p[i] : fill;
  return Load16(lanes);
}
HWY_INLINE void StorePartial16(const F32x16& v, float* p, size_t n) {
  alignas(64) float lanes[16];
  Store16(v, lanes);
  for (size_t i = 0; i < n; ++i) p[i] = lanes[i];
}

HWY_INLINE F32x16 Add16(const F32x16& a, const F32x16& b) {
  return EachPart([&](size_t i) { return hn::Add(a.part[i], b.part[i]); });
}
HWY_INLINE F32x16 Sub16(const F32x16& a, const F32x16& b) {
  return EachPart([&](size_t i) { return hn::Sub(a.part[i], b.part[i]); });
}
HWY_INLINE F32x16 Mul16(const F32x16& a, const F32x16& b) {
  return EachPart([&](size_t i) { return hn::Mul(a.part[i], b.part[i]); });
}
HWY_INLINE F32x16 Div16(const F32x16& a, const F32x16& b) {
  return EachPart([&](size_t i) { return hn::Div(a.part[i], b.part[i]); });
}
HWY_INLINE F32x16 Max16(const F32x16& a, const F32x16& b) {
  return EachPart([&](size_t i) { return hn::Max(a.part[i], b.part[i]); });
}
// a * b + c, rounded once.
HWY_INLINE F32x16 MulAdd16(const F32x16& a, const F32x16& b, const F32x16& c) {
  return EachPart(
      [&](size_t i) { return hn::MulAdd(a.part[i], b.part[i], c.part[i]); });
}
HWY_INLINE F32x16 Abs16(const F32x16& a) {
  return EachPart([&](size_t i) { return hn::Abs(a.part[i]); });
}
HWY_INLINE F32x16 Neg16(const F32x16& a) {
  return EachPart([&](size_t i) { return hn::Neg(a.part[i]); });
}

// Lanes 0..7 with 8..15, then 4 apart, then 2, then 1: one tree everywhere.
#if HWY_TARGET <= HWY_AVX2
// Halves added until 4 lanes are left.
template <class V>
HWY_INLINE auto FoldTo4(const V& v) {
  const hn::DFromV<V> d;
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    return FoldTo4(
        hn::Add(hn::LowerHalf(v), hn::UpperHalf(hn::Half<decltype(d)>(), v)));
  }
}
HWY_INLINE float ReduceAdd16(const F32x16& v) {
  auto sum = v.part[0];
  if constexpr (kParts == 2) sum = hn::Add(sum, v.part[1]);
  auto four = FoldTo4(sum);
  four = hn::Add(four, hn::Shuffle1032(four));
  return hn::GetLane(hn::Add(four, hn::Shuffle2301(four)));
}
#else
HWY_INLINE float ReduceAdd16(const F32x16& v) {
  alignas(64) float a[16];
  Store16(v, a);
  float b[8], c[4];
  for (size_t i = 0; i < 8; ++i) b[i] = a[i] + a[i + 8];
  for (size_t i = 0; i < 4; ++i) c[i] = b[i] + b[i + 4];
  return (c[0] + c[2]) + (c[1] + c[3]);
}
#endif
// Any order gives the same bits, but for NaN and the sign of 0.
HWY_INLINE float ReduceMax16(const F32x16& v) {
  auto most = v.part[0];
  for (size_t i = 1; i < kParts; ++i) most = hn::Max(most, v.part[i]);
  return hn::GetLane(hn::MaxOfLanes(FloatTag(), most));
}

// 16 IEEE half and int8 values as floats: exact.
HWY_INLINE F32x16 LoadF16x16(const uint16_t* p) {
  const hn::Rebind<uint16_t, FloatTag> d16;
  const hn::Rebind<hwy::float16_t, FloatTag> d_half;
  return EachPart([&](size_t i) {
    const auto bits = hn::LoadU(d16, p + i * kPartLanes);
    return hn::PromoteTo(FloatTag(), hn::BitCast(d_half, bits));
  });
}
#if HWY_TARGET <= HWY_AVX2
// 16 floats as IEEE halves, rounded to nearest even.
HWY_INLINE void StoreF16x16(const F32x16& v, std::byte* p) {
  const hn::Rebind<hwy::float16_t, FloatTag> d_half;
  for (size_t i = 0; i < kParts; ++i) {
    hn::StoreU(hn::DemoteTo(d_half, v.part[i]), d_half,
               reinterpret_cast<hwy::float16_t*>(p) + i * kPartLanes);
  }
}
#endif
HWY_INLINE F32x16 LoadI8x16(const int8_t* p) {
  const hn::Rebind<int8_t, FloatTag> d8;
  return EachPart([&](size_t i) {
    const auto ints =
        hn::PromoteTo(IntTag(), hn::LoadU(d8, p + i * kPartLanes));
    return hn::ConvertTo(FloatTag(), ints);
  });
}
HWY_INLINE F32x16 LoadI16x16(const int16_t* p) {
  const hn::Rebind<int16_t, FloatTag> d16;
  return EachPart([&](size_t i) {
    const auto ints =
        hn::PromoteTo(IntTag(), hn::LoadU(d16, p + i * kPartLanes));
    return hn::ConvertTo(FloatTag(), ints);
  });
}
HWY_INLINE F32x16 LoadI32x16(const int32_t* p) {
  return EachPart([&](size_t i) {
    return hn::ConvertTo(FloatTag(), hn::LoadU(IntTag(), p + i * kPartLanes));
  });
}

// exp(x), within 2 ulp for normal results; below -87.3 it is 0, above 88.7
// infinity; NaN stays NaN.
// x = n ln 2 + r with |r| <= ln 2 / 2; exp(r) by the degree-7 Taylor polynomial
// in Horner's form (its error is under 2^-27 there), then scaled by 2^n.
HWY_INLINE F32x16 Exp16(const F32x16& x) {
  const FloatTag d;
  return EachPart([&](size_t i) {
    const auto v = x.part[i];
    const auto clamped =
        hn::Max(hn::Set(d, -104.0f), hn::Min(v, hn::Set(d, 89.0f)));
    const auto n = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504088896f)));
    // ln 2 in two parts: the first product is exact.
    auto r = hn::MulAdd(n, hn::Set(d, -0.693359375f), clamped);
    r = hn::MulAdd(n, hn::Set(d, 2.12194440e-4f), r);
    auto p = hn::Set(d, 1.0f / 5040);
    p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 720));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 120));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 24));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 6));
    p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
    p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
    // Two factors, so that 2^n may be out of range while the result is not.
    const auto half = hn::ShiftRight<1>(hn::ConvertTo(IntTag(), n));
    const auto rest = hn::Sub(hn::ConvertTo(IntTag(), n), half);
    const auto bias = hn::Set(IntTag(), 127);
    const auto scale_a = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
    const auto scale_b = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(rest, bias)));
    auto y = hn::Mul(hn::Mul(p, scale_a), scale_b);
    y = hn::IfThenElse(hn::Lt(v, hn::Set(d, -87.3365447f)), hn::Zero(d), y);
    y = hn::IfThenElse(hn::Gt(v, hn::Set(d, 88.7228390f)),
                       hn::Set(d, std::numeric_limits<float>::infinity()), y);
    return hn::IfThenElse(hn::IsNaN(v), v, y);
  });
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle

#include "kernels/elementwise.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// Calls fn(offset, lanes): 16 lanes at a time, then the rest.
template <class Fn>
HWY_INLINE void ForLanes(size_t n, const Fn& fn) {
  size_t i = 0;
  for (; i + 16 <= n; i += 16) fn(i, size_t{16});
  if (i < n) fn(i, n - i);
}
HWY_INLINE F32x16 LoadUpTo16(const float* p, size_t lanes) {
  return lanes == 16 ? Load16(p) : LoadPartial16(p, lanes);
}
HWY_INLINE void StoreUpTo16(const F32x16& v, float* p, size_t lanes) {
  if (lanes == 16) return Store16(v, p);
  StorePartial16(v, p, lanes);
}

void SiluMul(const float* gate, const float* up, size_t n, float* out) {
  const F32x16 one = Set16(1.0f);
  ForLanes(n, [&](size_t i, size_t lanes) {
    const F32x16 z = LoadUpTo16(gate + i, lanes);
    const F32x16 silu = Div16(z, Add16(one, Exp16(Neg16(z))));
    StoreUpTo16(Mul16(silu, LoadUpTo16(up + i, lanes)), out + i, lanes);
  });
}

void Sigmoid(float* x, size_t n) {
  const F32x16 one = Set16(1.0f);
  ForLanes(n, [&](size_t i, size_t lanes) {
    const F32x16 e = Exp16(Neg16(LoadUpTo16(x + i, lanes)));
    StoreUpTo16(Div16(one, Add16(one, e)), x + i, lanes);
  });
}

void Add(const float* x, size_t n, float* acc) {
  ForLanes(n, [&](size_t i, size_t lanes) {
    StoreUpTo16(Add16(LoadUpTo16(acc + i, lanes), LoadUpTo16(x + i, lanes)),
                acc + i, lanes);
  });
}

void AddScaled(const float* x, float weight, size_t n, float* acc) {
  const F32x16 w = Set16(weight);
  ForLanes(n, [&](size_t i, size_t lanes) {
    StoreUpTo16(
        MulAdd16(LoadUpTo16(x + i, lanes), w, LoadUpTo16(acc + i, lanes)),
        acc + i, lanes);
  });
}

void Softmax(float* x, size_t n) {
  const float lowest = -std::numeric_limits<float>::infinity();
  F32x16 largest = Set16(lowest);
  ForLanes(n, [&](size_t i, size_t lanes) {
    largest = Max16(largest, lanes == 16 ? Load16(x + i)
                                         : LoadPartial16(x + i, lanes, lowest));
  });
  const F32x16 max = Set16(ReduceMax16(largest));
  F32x16 sum = Zero16();
  ForLanes(n, [&](size_t i, size_t lanes) {
    const F32x16 v =
        lanes == 16 ? Load16(x + i) : LoadPartial16(x + i, lanes, lowest);
    const F32x16 e = Exp16(Sub16(v, max));
    sum = Add16(sum, e);
    StoreUpTo16(e, x + i, lanes);
  });
  const F32x16 total = Set16(ReduceAdd16(sum));
  ForLanes(n, [&](size_t i, size_t lanes) {
    StoreUpTo16(Div16(LoadUpTo16(x + i, lanes), total), x + i, lanes);
  });
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(SiluMul);
HWY_EXPORT(Sigmoid);
HWY_EXPORT(Add);
HWY_EXPORT(AddScaled);
HWY_EXPORT(Softmax);

void SiluMul(const float* gate, const float* up, size_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(SiluMul)(gate, up, n, out);
}
void Sigmoid(float* x, size_t n) { HWY_DYNAMIC_DISPATCH(Sigmoid)(x, n); }
void Add(const float* x, size_t n, float* acc) {
  HWY_DYNAMIC_DISPATCH(Add)(x, n, acc);
}
void AddScaled(const float* x, float weight, size_t n, float* acc) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(x, weight, n, acc);
}
void Softmax(float* x, size_t n) { HWY_DYNAMIC_DISPATCH(Softmax)(x, n); }

}  // namespace muster::kernels
#endif  // HWY_ONCE

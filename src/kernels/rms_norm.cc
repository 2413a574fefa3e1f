#include "kernels/rms_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rms_norm.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

float SumOfSquares(const float* HWY_RESTRICT x, size_t dim) {
  F32x16 sum = Zero16();
  size_t i = 0;
  for (; i + 16 <= dim; i += 16) {
    const F32x16 v = Load16(x + i);
    sum = MulAdd16(v, v, sum);
  }
  if (i < dim) {
    const F32x16 v = LoadPartial16(x + i, dim - i);
    sum = MulAdd16(v, v, sum);
  }
  return ReduceAdd16(sum);
}

void RmsNorm(const float* x, const float* scale, float eps, size_t dim,
             float* out) {
  const float inv_rms =
      1.0f / std::sqrt(SumOfSquares(x, dim) / static_cast<float>(dim) + eps);
  const F32x16 mul = Set16(inv_rms);
  size_t i = 0;
  for (; i + 16 <= dim; i += 16) {
    Store16(Mul16(Mul16(Load16(x + i), mul), Load16(scale + i)), out + i);
  }
  for (; i < dim; ++i) out[i] = x[i] * inv_rms * scale[i];
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(RmsNorm);

void RmsNorm(const float* x, const float* scale, float eps, size_t dim,
             float* out) {
  HWY_DYNAMIC_DISPATCH(RmsNorm)(x, scale, eps, dim, out);
}

void RmsNormReference(const float* x, const float* scale, float eps, size_t dim,
                      float* out) {
  double sum = 0.0;
  for (size_t i = 0; i < dim; ++i) sum += double{x[i]} * x[i];
  const double inv_rms =
      1.0 / std::sqrt(sum / static_cast<double>(dim) + double{eps});
  for (size_t i = 0; i < dim; ++i) {
    out[i] = static_cast<float>(x[i] * scale[i] * inv_rms);
  }
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

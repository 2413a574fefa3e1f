// Root-mean-square normalization of rows (Zhang and Sennrich, 2019).
#pragma once

#include <cstddef>

namespace muster::kernels {

// out[i] = x[i] * scale[i] / sqrt(mean(x^2) + eps), for i in [0, dim).
// `out` may be `x`. Thread-safe. REQUIRES: dim > 0.
void RmsNorm(const float* x, const float* scale, float eps, size_t dim,
             float* out);

// The definition above, one scalar loop in double. Tests compare to this.
void RmsNormReference(const float* x, const float* scale, float eps, size_t dim,
                      float* out);

}  // namespace muster::kernels

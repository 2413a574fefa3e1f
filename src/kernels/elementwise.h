// Loops over vectors of floats. All thread-safe, any length, any alignment;
// the same bits on every instruction set.
#pragma once

#include <cstddef>

namespace muster::kernels {

// out[i] = silu(gate[i]) * up[i], silu(z) = z / (1 + exp(-z)). `out` may be
// either input. exp is a polynomial with at most 2 ulp of error.
void SiluMul(const float* gate, const float* up, size_t n, float* out);

// x[i] = 1 / (1 + exp(-x[i])), with the same exp.
void Sigmoid(float* x, size_t n);

// acc[i] += x[i]
void Add(const float* x, size_t n, float* acc);

// acc[i] = acc[i] + weight * x[i], one fused rounding.
void AddScaled(const float* x, float weight, size_t n, float* acc);

// x[i] = exp(x[i] - max) / sum. REQUIRES: n > 0. Entries of -inf become 0.
void Softmax(float* x, size_t n);

}  // namespace muster::kernels

// y = W x for stored weights, straight on their blocks.
//
// Every output element is one dot product whose order of additions is defined
// by `cols` and the weight type alone: the result has the same bits whatever
// the number of tokens, the split over threads, or the instruction set (AVX2 or
// AVX-512).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/activations.h"
#include "tensor/matrix_view.h"

namespace muster::kernels {

// out[i * out_stride + r - row_begin] =
//     sum over c of W[r, c] * x[tokens[i], c]
// for r in [row_begin, row_end) and every i; `tokens` are row numbers of `x`.
// One thread's share of a product. Thread-safe.
// REQUIRES: w.cols == x.cols; x is quantised if ReadsQuantized(w.type).
void MatMulRows(const WeightView& w, size_t row_begin, size_t row_end,
                const ActivationView& x, std::span<const uint32_t> tokens,
                float* out, size_t out_stride);

// The definition in double on dequantised weights and float activations.
// Tests compare to this.   out: [x.num_rows, w.rows]
void MatMulReference(const WeightView& w, const ActivationView& x, float* out);

}  // namespace muster::kernels

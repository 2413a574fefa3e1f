// y = W x for stored weights: quantised and BF16 ones in panels, other floats
// in rows.
//
// Every output element is one dot product whose order of additions is defined
// by `cols` and the weight type alone (panel_dot.h, bfloat_dot.h, float_dot.h):
// the result has the same bits whatever the number of tokens, the split over
// threads, or the instruction set; for weights in panels the plain reference
// included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/activations.h"
#include "tensor/matrix_view.h"

namespace muster::kernels {

// Rows are split over threads at multiples of this.
inline constexpr size_t kRowGrain = kPanelRows;

// out[i * out_stride + r - row_begin] =
//     sum over c of W[r, c] * x[tokens[i], c]
// for r in [row_begin, row_end) and every i; `tokens` are row numbers of `x`.
// One thread's share of a product. Thread-safe.
// REQUIRES: w.cols == x.cols; row_begin is a multiple of kRowGrain. Types
// that have panels are in panels; x has the form that the type reads.
void MatMulRows(const WeightView& w, size_t row_begin, size_t row_end,
                const ActivationView& x, std::span<const uint32_t> tokens,
                float* out, size_t out_stride);

// The definition in double on dequantised weights and float activations.
// Tests compare to this.   out: [x.num_rows, w.rows]
void MatMulReference(const WeightView& w, const ActivationView& x, float* out);

}  // namespace muster::kernels

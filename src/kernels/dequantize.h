// Stored weights to float, exactly as the reference defines each block type.
// Source: ggml's block layouts; the `gguf` Python package is the oracle, bit
// for bit. FP8 E4M3 is decode(code) * scale of its tile.
#pragma once

#include <cstddef>

#include "tensor/dtype.h"
#include "tensor/matrix_view.h"

namespace muster::kernels {

// Decodes `num_elements` elements that start at `blocks`. Thread-safe.
// REQUIRES: `type` is a float type or a quantised one (not I8..I64), and
// num_elements is a multiple of its block.
void Dequantize(DType type, const std::byte* blocks, size_t num_elements,
                float* out);

// One row of a view, tile scales applied.   out: [w.cols]
void DequantizeRow(const WeightView& w, size_t row, float* out);

}  // namespace muster::kernels

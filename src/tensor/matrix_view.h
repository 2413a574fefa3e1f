// Views of weights: a pointer, a type and a shape. A view owns nothing; whoever
// made the bytes says how long they live.
#pragma once

#include <cstddef>

#include "tensor/dtype.h"

namespace muster {

// A row-major matrix of weights, [rows, cols], each row whole blocks of `type`.
// y = W x reads it row by row: rows are outputs, cols are inputs.
struct WeightView {
  DType type = DType::kF32;
  const std::byte* data = nullptr;
  size_t rows = 0;
  size_t cols = 0;
  // FP8 only: one factor per tile of [scale_tile_rows, scale_tile_cols]
  // weights, row-major, [ceil(rows / tile_rows), ceil(cols / tile_cols)].
  const float* scales = nullptr;
  size_t scale_tile_rows = 0;
  size_t scale_tile_cols = 0;

  bool empty() const { return data == nullptr; }
  size_t row_bytes() const { return SizeBytes(type, cols); }
  size_t size_bytes() const { return rows * row_bytes(); }
  const std::byte* row(size_t r) const { return data + r * row_bytes(); }
};

}  // namespace muster

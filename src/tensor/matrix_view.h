// Views of weights: a pointer, a type and a shape. A view owns nothing; whoever
// made the bytes says how long they live.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/panels.h"

namespace muster {

enum class Layout : uint8_t {
  kRows,    // row-major, each row whole blocks of the type, as files have it
  kPanels,  // panels.h: what products with types that have them read
};

// A matrix of weights, [rows, cols]. y = W x: rows are outputs, cols are
// inputs.
struct WeightView {
  DType type = DType::kF32;
  Layout layout = Layout::kRows;
  const std::byte* data = nullptr;
  size_t rows = 0;
  size_t cols = 0;
  // FP8 only: one factor per tile of [scale_tile_rows, scale_tile_cols]
  // weights, row-major, [ceil(rows / tile_rows), ceil(cols / tile_cols)].
  const float* scales = nullptr;
  size_t scale_tile_rows = 0;
  size_t scale_tile_cols = 0;

  bool empty() const { return data == nullptr; }
  size_t size_bytes() const {
    return layout == Layout::kPanels ? NumPanels(rows) * PanelBytes(type, cols)
                                     : rows * row_bytes();
  }
  // Of a matrix in rows.
  size_t row_bytes() const { return SizeBytes(type, cols); }
  const std::byte* row(size_t r) const { return data + r * row_bytes(); }
  // Of a matrix in panels: the one that holds rows 16 p to 16 p + 15.
  const std::byte* panel(size_t p) const {
    return data + p * PanelBytes(type, cols);
  }
};

}  // namespace muster

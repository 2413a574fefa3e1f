// Where the three matrices of an expert stand in one piece of memory: what a
// slot of the hot tier holds and what an expert pack stores. All experts of a
// layer share a layout.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"
#include "tensor/matrix_view.h"

namespace muster {

// Experts start on, and fill, whole pages: what direct I/O reads and writes.
inline constexpr size_t kExpertAlignment = 4096;

// What a matrix is, wherever it stands.
struct MatrixShape {
  DType type = DType::kF32;
  size_t rows = 0;
  size_t cols = 0;
  // FP8 only, else 0: weights that share a factor (see WeightView).
  size_t scale_tile_rows = 0;
  size_t scale_tile_cols = 0;

  bool operator==(const MatrixShape&) const = default;
  // Of FP8's factors; else 0.
  size_t num_scales() const;
};

struct PlacedMatrix {
  MatrixShape shape;
  Layout layout = Layout::kRows;  // panels where the type has them
  size_t offset = 0;              // bytes from the expert's start
  size_t scales_offset = 0;       // likewise; FP8 only

  // Of the weights, without scales.
  size_t size_bytes() const;
  // REQUIRES: `expert` is the start of the expert, aligned to 64 bytes.
  WeightView ViewIn(const std::byte* expert) const;
};

struct ExpertLayout {
  PlacedMatrix gate;      // [ff_dim, model_dim]
  PlacedMatrix up;        // [ff_dim, model_dim]
  PlacedMatrix down;      // [model_dim, ff_dim]
  size_t size_bytes = 0;  // a multiple of kExpertAlignment

  bool operator==(const ExpertLayout& other) const;
};

// gate, up, down, then the scales that they have, each aligned to 64 bytes;
// what is left of the last page is zeros.
ExpertLayout LayOutExpert(const MatrixShape& gate, const MatrixShape& up,
                          const MatrixShape& down);

}  // namespace muster

#include "tensor/expert_layout.h"

namespace muster {
namespace {

constexpr size_t kMatrixAlignment = 64;  // bytes: a cache line, a vector

size_t RoundUp(size_t n, size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

PlacedMatrix Place(const MatrixShape& shape, size_t& end) {
  PlacedMatrix placed{
      .shape = shape,
      .layout = HasPanels(shape.type) ? Layout::kPanels : Layout::kRows,
      .offset = end};
  end = RoundUp(end + placed.size_bytes(), kMatrixAlignment);
  return placed;
}

void PlaceScales(PlacedMatrix& placed, size_t& end) {
  if (placed.shape.num_scales() == 0) return;
  placed.scales_offset = end;
  end = RoundUp(end + placed.shape.num_scales() * sizeof(float),
                kMatrixAlignment);
}

bool SamePlace(const PlacedMatrix& a, const PlacedMatrix& b) {
  return a.shape == b.shape && a.layout == b.layout && a.offset == b.offset &&
         a.scales_offset == b.scales_offset;
}

}  // namespace

size_t MatrixShape::num_scales() const {
  if (scale_tile_rows == 0 || scale_tile_cols == 0) return 0;
  return ((rows + scale_tile_rows - 1) / scale_tile_rows) *
         ((cols + scale_tile_cols - 1) / scale_tile_cols);
}

size_t PlacedMatrix::size_bytes() const {
  return WeightView{.type = shape.type,
                    .layout = layout,
                    .rows = shape.rows,
                    .cols = shape.cols}
      .size_bytes();
}

WeightView PlacedMatrix::ViewIn(const std::byte* expert) const {
  WeightView view{.type = shape.type,
                  .layout = layout,
                  .data = expert + offset,
                  .rows = shape.rows,
                  .cols = shape.cols};
  if (shape.num_scales() != 0) {
    view.scales = reinterpret_cast<const float*>(expert + scales_offset);
    view.scale_tile_rows = shape.scale_tile_rows;
    view.scale_tile_cols = shape.scale_tile_cols;
  }
  return view;
}

bool ExpertLayout::operator==(const ExpertLayout& other) const {
  return SamePlace(gate, other.gate) && SamePlace(up, other.up) &&
         SamePlace(down, other.down) && size_bytes == other.size_bytes;
}

ExpertLayout LayOutExpert(const MatrixShape& gate, const MatrixShape& up,
                          const MatrixShape& down) {
  size_t end = 0;
  ExpertLayout layout;
  layout.gate = Place(gate, end);
  layout.up = Place(up, end);
  layout.down = Place(down, end);
  for (PlacedMatrix* placed : {&layout.gate, &layout.up, &layout.down}) {
    PlaceScales(*placed, end);
  }
  layout.size_bytes = RoundUp(end, kExpertAlignment);
  return layout;
}

}  // namespace muster

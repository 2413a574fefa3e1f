#include "experts/expert_copy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/dequantize.h"
#include "kernels/pack_panels.h"
#include "kernels/quantize.h"
#include "tensor/panels.h"

namespace muster::experts {
namespace {

MatrixShape InType(const MatrixShape& shape, DType type) {
  return {.type = type, .rows = shape.rows, .cols = shape.cols};
}

// Panel by panel: rows to floats, to blocks, to the panel.
void CopyMatrix(const WeightView& from, const PlacedMatrix& placed,
                std::byte* copy) {
  const DType type = placed.shape.type;
  const size_t row_bytes = SizeBytes(type, from.cols);
  std::vector<float> row(from.cols);
  std::vector<std::byte> blocks(kPanelRows * row_bytes);
  std::byte* panel = copy + placed.offset;
  for (size_t first = 0; first < from.rows; first += kPanelRows) {
    const size_t num_rows = std::min(kPanelRows, from.rows - first);
    for (size_t r = 0; r < num_rows; ++r) {
      kernels::DequantizeRow(from, first + r, row.data());
      kernels::Quantize(type, row.data(), from.cols,
                        blocks.data() + r * row_bytes);
    }
    kernels::PackPanel(type, blocks.data(), num_rows, from.cols, panel);
    panel += PanelBytes(type, from.cols);
  }
}

}  // namespace

Result<ExpertLayout> CopyLayout(const ExpertLayout& layout, DType type) {
  const size_t block = Traits(type).block_elements;
  for (const PlacedMatrix* matrix : {&layout.gate, &layout.up, &layout.down}) {
    if (matrix->shape.cols % block == 0) continue;
    return InvalidArgument(fmt::format(
        "rows of experts have {} weights, and low-bit copies in {} need whole "
        "blocks of {}: pack without --tail",
        matrix->shape.cols, Name(type), block));
  }
  const ExpertLayout copy = LayOutExpert(InType(layout.gate.shape, type),
                                         InType(layout.up.shape, type),
                                         InType(layout.down.shape, type));
  if (copy.size_bytes < layout.size_bytes) return copy;
  return InvalidArgument(fmt::format(
      "experts take {} bytes, and copies in {} would take {}: pack without "
      "--tail, or with fewer bits",
      layout.size_bytes, Name(type), copy.size_bytes));
}

void MakeCopy(const ExpertLayout& layout, const std::byte* expert,
              const ExpertLayout& copy_layout, std::byte* copy) {
  std::memset(copy, 0, copy_layout.size_bytes);
  CopyMatrix(layout.gate.ViewIn(expert), copy_layout.gate, copy);
  CopyMatrix(layout.up.ViewIn(expert), copy_layout.up, copy);
  CopyMatrix(layout.down.ViewIn(expert), copy_layout.down, copy);
}

}  // namespace muster::experts

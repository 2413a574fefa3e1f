#include "experts/source_expert.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/dequantize.h"
#include "kernels/pack_panels.h"

namespace muster::experts {
namespace {

// Of the source: some tens of microseconds of work.
constexpr size_t kTaskBytes = size_t{128} << 10;

MatrixShape ShapeOf(const model::MatrixRef& ref) {
  MatrixShape shape{.type = ref.type, .rows = ref.rows, .cols = ref.cols};
  if (ref.scales) {
    shape.scale_tile_rows = ref.scales->tile_rows;
    shape.scale_tile_cols = ref.scales->tile_cols;
  }
  return shape;
}

SourcePart WeightsOf(const model::MatrixRef& ref) {
  return {
      .file = ref.file, .offset = ref.offset, .size_bytes = ref.size_bytes()};
}

SourcePart ScalesOf(const model::MatrixRef& ref) {
  if (!ref.scales) return {};
  return {.file = ref.scales->file,
          .offset = ref.scales->offset,
          .size_bytes = SizeBytes(ref.scales->type, ShapeOf(ref).num_scales())};
}

// Types of scales are converted away: experts that differ in them alone would
// share a layout but not a converter.
bool SameScaleTypes(const model::ExpertRefs& a, const model::ExpertRefs& b) {
  const auto same = [](const model::MatrixRef& x, const model::MatrixRef& y) {
    return !x.scales || !y.scales || x.scales->type == y.scales->type;
  };
  return same(a.gate, b.gate) && same(a.up, b.up) && same(a.down, b.down);
}

}  // namespace

SourceParts PartsOf(const model::ExpertRefs& refs) {
  return {WeightsOf(refs.gate), WeightsOf(refs.up), WeightsOf(refs.down),
          ScalesOf(refs.gate),  ScalesOf(refs.up),  ScalesOf(refs.down)};
}

ExpertLayout LayoutOf(const model::ExpertRefs& refs) {
  return LayOutExpert(ShapeOf(refs.gate), ShapeOf(refs.up), ShapeOf(refs.down));
}

Result<std::vector<ExpertLayout>> LayoutsOf(const model::WeightIndex& index,
                                            const model::ModelConfig& config) {
  std::vector<ExpertLayout> layouts(index.layers.size());
  for (size_t l = 0; l < layouts.size(); ++l) {
    if (!config.layers[l].is_moe) continue;
    const auto& experts = index.layers[l].experts;
    layouts[l] = LayoutOf(experts.front());
    for (size_t e = 1; e < experts.size(); ++e) {
      if (LayoutOf(experts[e]) == layouts[l] &&
          SameScaleTypes(experts[e], experts.front())) {
        continue;
      }
      return Unsupported(fmt::format(
          "layer {}: experts 0 and {} are stored in different types", l, e));
    }
  }
  return layouts;
}

ExpertConverter::Piece ExpertConverter::MatrixPiece(
    const PlacedMatrix& placed) {
  const MatrixShape& shape = placed.shape;
  Piece piece{.rows = shape.rows,
              .cols = shape.cols,
              .type = shape.type,
              .offset = placed.offset};
  const size_t row_bytes = SizeBytes(shape.type, shape.cols);
  if (placed.layout == Layout::kPanels) {
    piece.how = Piece::How::kPack;
    piece.units = NumPanels(shape.rows);
    piece.source_bytes = kPanelRows * row_bytes;
    piece.converted_bytes = PanelBytes(shape.type, shape.cols);
  } else {
    piece.units = shape.rows;
    piece.source_bytes = piece.converted_bytes = row_bytes;
  }
  return piece;
}

ExpertConverter::Piece ExpertConverter::ScalePiece(const PlacedMatrix& placed,
                                                   DType type) {
  return {.units = placed.shape.num_scales(),
          .source_bytes = SizeBytes(type, 1),
          .converted_bytes = sizeof(float),
          .type = type,
          .how = Piece::How::kDecode,
          .offset = placed.scales_offset};
}

ExpertConverter::ExpertConverter(const model::ExpertRefs& refs)
    : layout_(experts::LayoutOf(refs)) {
  const model::MatrixRef* const matrices[] = {&refs.gate, &refs.up, &refs.down};
  const PlacedMatrix* const places[] = {&layout_.gate, &layout_.up,
                                        &layout_.down};
  for (size_t i = 0; i < 3; ++i) {
    pieces_[i] = MatrixPiece(*places[i]);
    if (matrices[i]->scales) {
      pieces_[3 + i] = ScalePiece(*places[i], matrices[i]->scales->type);
    }
  }
  size_t end = layout_.size_bytes;
  for (size_t i = kNumParts; i-- > 0;) {
    if (pieces_[i].units == 0) continue;
    pieces_[i].end = end;
    end = pieces_[i].offset;
  }
  for (size_t i = 0; i < kNumParts; ++i) {
    Piece& piece = pieces_[i];
    if (piece.units != 0) {
      piece.units_per_task =
          std::max<size_t>(1, kTaskBytes / piece.source_bytes);
    }
    first_task_[i + 1] =
        first_task_[i] +
        (piece.units + piece.units_per_task - 1) / piece.units_per_task;
  }
}

size_t ExpertConverter::PartOf(size_t task) const {
  CHECK_LT(task, num_tasks());
  return static_cast<size_t>(
      std::upper_bound(first_task_.begin(), first_task_.end(), task) -
      first_task_.begin() - 1);
}

void ExpertConverter::Convert(size_t task, const std::byte* const* parts,
                              std::byte* slot) const {
  const size_t part = PartOf(task);
  const Piece& piece = pieces_[part];
  const size_t begin = (task - first_task_[part]) * piece.units_per_task;
  const size_t end = std::min(piece.units, begin + piece.units_per_task);
  const std::byte* source = parts[part] + begin * piece.source_bytes;
  std::byte* out = slot + piece.offset + begin * piece.converted_bytes;
  switch (piece.how) {
    case Piece::How::kCopy:
      std::memcpy(out, source, (end - begin) * piece.source_bytes);
      break;
    case Piece::How::kPack: {
      const size_t row = begin * kPanelRows;
      const size_t end_row = std::min(piece.rows, end * kPanelRows);
      kernels::PackPanels({.type = piece.type,
                           .data = source,
                           .rows = end_row - row,
                           .cols = piece.cols},
                          out);
      break;
    }
    case Piece::How::kDecode:
      kernels::Dequantize(piece.type, source, end - begin,
                          reinterpret_cast<float*>(out));
      break;
  }
  if (end == piece.units) {
    std::byte* gap = out + (end - begin) * piece.converted_bytes;
    std::memset(gap, 0, static_cast<size_t>(slot + piece.end - gap));
  }
}

void ExpertConverter::ConvertAll(const std::byte* const* parts,
                                 std::byte* slot) const {
  for (size_t task = 0; task < num_tasks(); ++task) Convert(task, parts, slot);
}

}  // namespace muster::experts

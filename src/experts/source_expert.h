// An expert as its model's files have it: which bytes of which file it is, and
// how they become the piece of memory that ExpertLayout describes. The one
// place that does this: for loading, for writing packs and for misses of a
// model that is not packed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/status.h"
#include "model/config.h"
#include "model/weight_index.h"
#include "tensor/expert_layout.h"

namespace muster::experts {

// gate, up and down; then the scales of each (FP8).
inline constexpr size_t kNumParts = 6;

// A range of bytes of a file. Not there when size_bytes is 0.
struct SourcePart {
  uint32_t file = 0;  // index into ModelFiles::paths
  uint64_t offset = 0;
  size_t size_bytes = 0;
};
using SourceParts = std::array<SourcePart, kNumParts>;

// What must be read for an expert, one read a part. Parts of a tensor that
// holds gate and up together stand one behind the other.
SourceParts PartsOf(const model::ExpertRefs& refs);

// Where the expert's matrices stand once converted.
ExpertLayout LayoutOf(const model::ExpertRefs& refs);

// Of all layers, [num_layers]; size_bytes is 0 for a dense one. Fails with
// kUnsupported when two experts of a layer differ in type.
Result<std::vector<ExpertLayout>> LayoutsOf(const model::WeightIndex& index,
                                            const model::ModelConfig& config);

// Converts experts of one layer. Immutable; any number of threads may use it.
class ExpertConverter {
 public:
  // `refs`: of any expert of the layer.
  explicit ExpertConverter(const model::ExpertRefs& refs);

  const ExpertLayout& layout() const { return layout_; }

  // The work is cut into tasks that are independent of one another: a
  // ThreadPool may share them out, and a task may start once the bytes of its
  // part are there. All tasks together write every byte of the slot.
  size_t num_tasks() const { return first_task_.back(); }
  // 0 to kNumParts - 1: the only part that the task reads.
  size_t PartOf(size_t task) const;
  //   parts: [kNumParts] the bytes of each part, at any alignment
  //   slot: [layout().size_bytes], aligned to 64 bytes
  void Convert(size_t task, const std::byte* const* parts,
               std::byte* slot) const;

  void ConvertAll(const std::byte* const* parts, std::byte* slot) const;

 private:
  // Of one part: rows (panels of a matrix in panels) that are converted alike.
  struct Piece {
    size_t units = 0;            // rows, panels or scales
    size_t units_per_task = 1;   // at least 1
    size_t source_bytes = 0;     // a unit's
    size_t converted_bytes = 0;  // a unit's
    size_t rows = 0;             // of the matrix
    size_t cols = 0;
    DType type = DType::kF32;
    enum class How : uint8_t { kCopy, kPack, kDecode } how = How::kCopy;
    size_t offset = 0;  // in the slot
    size_t end = 0;     // where the next part begins: zeros up to there
  };
  static Piece MatrixPiece(const PlacedMatrix& placed);
  static Piece ScalePiece(const PlacedMatrix& placed, DType type);

  ExpertLayout layout_;
  std::array<Piece, kNumParts> pieces_;
  std::array<size_t, kNumParts + 1> first_task_{};
};

}  // namespace muster::experts

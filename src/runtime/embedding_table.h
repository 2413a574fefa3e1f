// The embedding table: a token looks up one row of it and multiplies none, so
// that it may stay on disk where memory is wanted for experts.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/status.h"
#include "io/file.h"
#include "model/weight_index.h"
#include "tensor/matrix_view.h"

namespace muster::runtime {

// Immutable: any number of threads may look up.
class EmbeddingTable {
 public:
  EmbeddingTable() = default;
  // Borrows the view.   rows: [vocab_size, model_dim]
  explicit EmbeddingTable(const WeightView& rows) : rows_(rows) {}
  // Each lookup is a read through the page cache. REQUIRES: CanStayOnDisk(ref).
  EmbeddingTable(io::File file, const model::MatrixRef& ref);

  // FP8's factors would have to be read beside.
  static bool CanStayOnDisk(const model::MatrixRef& ref) {
    return ref.present() && !ref.scales;
  }

  bool on_disk() const { return file_.has_value(); }

  // Blocks when on disk; fails with kIoError then only.
  //   out: [model_dim];  REQUIRES: token < vocab_size.
  Status Row(size_t token, float* out) const;

 private:
  WeightView rows_;
  std::optional<io::File> file_;
  model::MatrixRef ref_;
};

}  // namespace muster::runtime

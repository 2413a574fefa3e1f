#include "runtime/embedding_table.h"

#include "kernels/dequantize.h"
#include "kernels/scratch.h"

namespace muster::runtime {

EmbeddingTable::EmbeddingTable(io::File file, const model::MatrixRef& ref)
    : file_(std::move(file)), ref_(ref) {
  file_->AdviseRandom();
}

Status EmbeddingTable::Row(size_t token, float* out) const {
  if (!on_disk()) {
    kernels::DequantizeRow(rows_, token, out);
    return {};
  }
  const size_t row_bytes = SizeBytes(ref_.type, ref_.cols);
  std::byte* blocks =
      kernels::ThreadScratch(kernels::Scratch::kLoad, row_bytes);
  RETURN_IF_ERROR(
      file_->ReadAt(ref_.offset + token * row_bytes, {blocks, row_bytes}));
  kernels::Dequantize(ref_.type, blocks, ref_.cols, out);
  return {};
}

}  // namespace muster::runtime

// Floats to the low-bit blocks that copies of experts are stored in. Lossy: it
// looks for the scales of least squared error. Pure float32 arithmetic in a
// fixed order: equal weights give equal bytes on every machine and thread.
// Source: ggml's block layouts; the search is our own.
#pragma once

#include <cstddef>

#include "tensor/dtype.h"

namespace muster::kernels {

constexpr bool CanQuantizeTo(DType type) {
  return type == DType::kQ2_K || type == DType::kQ3_K;
}

// Writes num_elements / 256 blocks. Weights that are not finite count as 0, and
// those that no block's scale reaches as the nearest that one does.
// Thread-safe. REQUIRES: CanQuantizeTo(type), num_elements is a multiple of its
// block.
//   weights: [num_elements];   blocks: [SizeBytes(type, num_elements)]
void Quantize(DType type, const float* weights, size_t num_elements,
              std::byte* blocks);

}  // namespace muster::kernels

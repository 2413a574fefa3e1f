// Rows of activations in the two forms that matrix products read: float for
// float weights, 8-bit integers with a scale per 32 for quantised weights.
// Quantised once, then shared by every product that reads the same rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/thread_pool.h"
#include "tensor/aligned_buffer.h"
#include "tensor/dtype.h"

namespace muster::kernels {

// Quantised rows are padded with zeros to whole super-blocks of this many
// elements, so that products need no special last step.
inline constexpr size_t kActivationBlock = 256;
inline constexpr size_t kActivationGroup = 32;  // elements that share a scale

// What a product reads. Borrowed from an Activations object.
struct ActivationView {
  const float* x = nullptr;   // [num_rows, cols]
  const int8_t* q = nullptr;  // [num_rows, padded_cols], in [-127, 127]
  // Per 16 elements, so that every weight type's groups find theirs; the two
  // halves of a group of 32 hold the same scale.
  const float* scales = nullptr;  // [num_rows, padded_cols / 16]
  const int16_t* sums = nullptr;  // [num_rows, padded_cols / 16], sums of q
  size_t num_rows = 0;
  size_t cols = 0;
  size_t padded_cols = 0;  // a multiple of kActivationBlock
};

// True when products with weights of this type read q, scales and sums.
bool ReadsQuantized(DType weight_type);

// Owns the quantised form of rows; reuse one object, it grows as needed.
// One thread at a time.
class Activations {
 public:
  // Borrows `x` [num_rows, cols]: it must outlive the view. The quantised form
  // is made only if `quantize`. scale = max|x| / 127 of a group (float),
  // q = round to nearest even of x * (1 / scale); a group of zeros has scale 0.
  // The result depends on the row alone, never on threads or on other rows.
  // REQUIRES: cols is a multiple of 32 if `quantize`.
  ActivationView Set(const float* x, size_t num_rows, size_t cols,
                     bool quantize, ThreadPool& pool);

 private:
  AlignedBuffer q_;
  AlignedBuffer scales_;
  AlignedBuffer sums_;
};

}  // namespace muster::kernels

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

// 32 elements that share a scale: x[i] is about scale * q[i].
//   scale = max|x| / 127 (float), q = x * (1 / scale) to nearest even; a group
//   of zeros has scale 0, one with anything not finite has scale NaN.
struct alignas(64) ActivationGroup {
  int8_t q[32];  // in [-127, 127]
  float scale;
  float scaled_sum;           // scale * (sum of q)
  int32_t minus_sum;          // -(sum of q)
  float half_scaled_sums[2];  // of q[0, 16) and q[16, 32)
  int32_t minus_half_sums[2];
  int32_t unused;
};
static_assert(sizeof(ActivationGroup) == 64);

// What a product reads. Borrowed.
struct ActivationView {
  const float* x = nullptr;                 // [num_rows, cols]; may be null ...
  const ActivationGroup* groups = nullptr;  // ... or [num_rows, num_groups]
  size_t num_rows = 0;
  size_t cols = 0;
  size_t num_groups = 0;  // a row's, padded to an even number with zeros

  const ActivationGroup* row(size_t r) const { return groups + r * num_groups; }
};

// True when products with weights of this type read groups.
bool ReadsQuantized(DType weight_type);

// Quantises `cols` elements (a multiple of 32). The result depends on each
// group of 32 alone.
void QuantizeGroups(const float* x, size_t cols, ActivationGroup* groups);

// Owns the quantised form of rows; reuse one object, it grows as needed.
// One thread at a time.
class Activations {
 public:
  // Borrows `x` [num_rows, cols]: it must outlive the view. The quantised form
  // is made only if `quantize`.
  // REQUIRES: cols is a multiple of 32 if `quantize`.
  ActivationView Set(const float* x, size_t num_rows, size_t cols,
                     bool quantize, ThreadPool& pool);

  // Room for a producer that quantises as it goes, into row(r) of the result
  // through groups(); padding is zero.
  ActivationView Reserve(size_t num_rows, size_t cols);
  ActivationGroup* groups() {
    return reinterpret_cast<ActivationGroup*>(groups_.data());
  }

 private:
  AlignedBuffer groups_;
};

}  // namespace muster::kernels

// Rows of activations in the three forms that matrix products read: float for
// float weights, BF16 for BF16 weights, 8-bit integers with a scale per 32 for
// quantised weights. Rounded once, then shared by every product that reads the
// same rows.
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

// Which forms are wanted, or are there.
struct ActivationForms {
  bool floats = false;
  bool bfloats = false;
  bool groups = false;

  ActivationForms& operator|=(const ActivationForms& other);
};

// The one that products with weights of this type read.
ActivationForms FormRead(DType weight_type);

// What a product reads: the forms that are not null. Borrowed.
struct ActivationView {
  const float* x = nullptr;                 // [num_rows, cols]
  const ActivationGroup* groups = nullptr;  // [num_rows, num_groups]
  const uint16_t* bfloats = nullptr;        // [num_rows, bfloat_stride]
  size_t num_rows = 0;
  size_t cols = 0;
  size_t num_groups = 0;     // a row's, padded to an even number with zeros
  size_t bfloat_stride = 0;  // the first PaddedBFloats(cols) are read

  const ActivationGroup* row(size_t r) const { return groups + r * num_groups; }
  const uint16_t* bfloat_row(size_t r) const {
    return bfloats + r * bfloat_stride;
  }
};

// Quantises `cols` elements (a multiple of 32). The result depends on each
// group of 32 alone.
void QuantizeGroups(const float* x, size_t cols, ActivationGroup* groups);

// Rounds to the nearest BF16, ties to even.
void RoundToBFloats(const float* x, size_t n, uint16_t* out);

// Owns the rounded forms of rows; reuse one object, it grows as needed.
// One thread at a time.
class Activations {
 public:
  // Borrows `x` [num_rows, cols]: it must outlive the view, which has it
  // whatever the forms.
  // REQUIRES: cols is a multiple of 32 where groups are wanted.
  ActivationView Set(const float* x, size_t num_rows, size_t cols,
                     const ActivationForms& forms, ThreadPool& pool);

  // Room for a producer that rounds as it goes, into the rows of the result
  // through groups() and bfloats(); padding is zero. Floats are the caller's.
  ActivationView Reserve(size_t num_rows, size_t cols,
                         const ActivationForms& forms);
  ActivationGroup* groups() {
    return reinterpret_cast<ActivationGroup*>(groups_.data());
  }
  uint16_t* bfloats() { return reinterpret_cast<uint16_t*>(bfloats_.data()); }

 private:
  void ReserveGroups(ActivationView& view);
  void ReserveBFloats(ActivationView& view);

  AlignedBuffer groups_;
  AlignedBuffer bfloats_;
};

}  // namespace muster::kernels

// What one thread's share of a product reads and writes besides the weights:
// passed across the dispatch to the chosen instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activations.h"

namespace muster::kernels {

struct RowTask {
  const ActivationView* x;
  const uint32_t* tokens;  // [num_tokens], rows of x
  size_t num_tokens;
  float* out;  // [num_tokens, out_stride], at the first row's place
  size_t out_stride;
};

}  // namespace muster::kernels

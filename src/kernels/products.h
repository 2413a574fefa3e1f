// Several matrix products as one parallel region: the gate and up of all chosen
// experts, or q, k and v of a layer, split over the threads by work.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/activations.h"
#include "kernels/matmul.h"
#include "tensor/matrix_view.h"

namespace muster::kernels {

// out[i * out_stride + r] = W[r, :] . x[tokens[i], :]
struct Product {
  const WeightView* weights = nullptr;
  const ActivationView* x = nullptr;
  std::span<const uint32_t> tokens;  // rows of x
  float* out = nullptr;              // [tokens.size(), out_stride]
  size_t out_stride = 0;
};

// Owns the list of tasks, so that a step allocates nothing once warm.
// One thread at a time.
class ProductRunner {
 public:
  // Runs all; returns when all are done. One region: no product may read what
  // another writes.
  void Run(std::span<const Product> products, ThreadPool& pool);

 private:
  struct Task {
    uint32_t product;
    size_t row_begin;
    size_t row_end;
  };
  std::vector<Task> tasks_;
};

}  // namespace muster::kernels

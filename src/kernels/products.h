// Several matrix products as one parallel region, split over the threads by
// work: q, k and v of a layer; gate, up and the activation function of all
// chosen experts; their down products with the weighted sum.
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

// Where gated products leave their results: in the one form, of those that are
// not null, that the down product reads.
struct InnerRows {
  float* x = nullptr;                 // [rows, cols], or ...
  ActivationGroup* groups = nullptr;  // ... [rows, num_groups], or ...
  uint16_t* bfloats = nullptr;        // ... [rows, bfloat_stride]
  size_t cols = 0;
  size_t num_groups = 0;
  size_t bfloat_stride = 0;
};

// inner[first_row + i, r] = silu(gate[r, :] . x_i) * (up[r, :] . x_i), with x_i
// row tokens[i] of x.
struct GatedProduct {
  const WeightView* gate = nullptr;  // [cols, x.cols]
  const WeightView* up = nullptr;    // [cols, x.cols]
  const ActivationView* x = nullptr;
  std::span<const uint32_t> tokens;
  InnerRows inner;
  size_t first_row = 0;
};

// One term of out[r] = sum of weight * (W[r, :] . x[row, :]).
struct WeightedProduct {
  const WeightView* weights = nullptr;
  const ActivationView* x = nullptr;
  uint32_t row = 0;
  float weight = 1.0f;
};

// Owns the list of tasks, so that a step allocates nothing once warm.
// One thread at a time. Each call is one region: it returns when all is done,
// and nothing that it reads may be what it writes.
class ProductRunner {
 public:
  void Run(std::span<const Product> products, ThreadPool& pool);

  // REQUIRES: cols is a multiple of 32 where inner has groups.
  void RunGated(std::span<const GatedProduct> products, ThreadPool& pool);

  // One token. Terms are added in their order, each by one fused multiply-add,
  // as AddScaled does; all have as many rows.   out: [rows]
  void RunWeightedSum(std::span<const WeightedProduct> terms, float* out,
                      ThreadPool& pool);

 private:
  struct Task {
    uint32_t product;
    size_t row_begin;
    size_t row_end;
  };
  // Cuts products of `rows` and `cost` each into tasks of like cost, at
  // multiples of `grain` rows.
  void StartPlan(double total_cost, size_t num_threads);
  void PlanProduct(uint32_t product, size_t rows, double cost, size_t grain);

  double cost_per_task_ = 1;
  std::vector<Task> tasks_;
};

}  // namespace muster::kernels

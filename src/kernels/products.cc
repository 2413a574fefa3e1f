#include "kernels/products.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/elementwise.h"
#include "kernels/scratch.h"

namespace muster::kernels {
namespace {

// Tasks a thread: enough to even out, few enough to stream.
constexpr size_t kTasksPerThread = 8;

// Time is reading the weights plus computing on them; the compute of a few
// tokens hides behind the read, more add to it.
double Cost(const WeightView& weights, size_t num_tokens) {
  return static_cast<double>(weights.size_bytes()) *
         std::max(1.0, static_cast<double>(num_tokens) / 4);
}

// Columns [begin, begin + width) of a row of inner activations.
void StoreInner(const float* x, size_t width, const InnerRows& inner,
                size_t row, size_t begin) {
  if (inner.groups != nullptr) {
    QuantizeGroups(x, width,
                   inner.groups + row * inner.num_groups + begin / kPanelGroup);
  } else if (inner.bfloats != nullptr) {
    RoundToBFloats(x, width, inner.bfloats + row * inner.bfloat_stride + begin);
  } else {
    std::copy_n(x, width, inner.x + row * inner.cols + begin);
  }
}

// Rows [begin, end) of a gated product, for all its tokens.
void RunGatedRows(const GatedProduct& product, size_t begin, size_t end) {
  const size_t width = end - begin;
  const size_t num_tokens = product.tokens.size();
  auto* gate = reinterpret_cast<float*>(ThreadScratch(
      Scratch::kFusedProduct, 2 * num_tokens * width * sizeof(float)));
  float* up = gate + num_tokens * width;
  MatMulRows(*product.gate, begin, end, *product.x, product.tokens, gate,
             width);
  MatMulRows(*product.up, begin, end, *product.x, product.tokens, up, width);
  SiluMul(gate, up, num_tokens * width, gate);
  for (size_t i = 0; i < num_tokens; ++i) {
    StoreInner(gate + i * width, width, product.inner, product.first_row + i,
               begin);
  }
}

}  // namespace

void ProductRunner::StartPlan(double total_cost, size_t num_threads) {
  tasks_.clear();
  cost_per_task_ = std::max(
      1.0, total_cost / static_cast<double>(num_threads * kTasksPerThread));
}

void ProductRunner::PlanProduct(uint32_t product, size_t rows, double cost,
                                size_t grain) {
  const auto wanted = static_cast<size_t>(cost / cost_per_task_) + 1;
  const size_t step =
      ((rows + wanted - 1) / wanted + grain - 1) / grain * grain;
  for (size_t row = 0; row < rows; row += step) {
    tasks_.push_back({product, row, std::min(rows, row + step)});
  }
}

void ProductRunner::Run(std::span<const Product> products, ThreadPool& pool) {
  const auto cost = [](const Product& p) {
    return Cost(*p.weights, p.tokens.size());
  };
  double total = 0;
  for (const Product& product : products) total += cost(product);
  StartPlan(total, pool.num_threads());
  for (uint32_t p = 0; p < products.size(); ++p) {
    PlanProduct(p, products[p].weights->rows, cost(products[p]), kRowGrain);
  }
  pool.ForEach(tasks_.size(), [&](size_t t) {
    const Task& task = tasks_[t];
    const Product& product = products[task.product];
    MatMulRows(*product.weights, task.row_begin, task.row_end, *product.x,
               product.tokens, product.out + task.row_begin,
               product.out_stride);
  });
}

void ProductRunner::RunGated(std::span<const GatedProduct> products,
                             ThreadPool& pool) {
  const auto cost = [](const GatedProduct& p) {
    return Cost(*p.gate, p.tokens.size()) + Cost(*p.up, p.tokens.size());
  };
  double total = 0;
  for (const GatedProduct& product : products) total += cost(product);
  StartPlan(total, pool.num_threads());
  for (uint32_t p = 0; p < products.size(); ++p) {
    // Whole groups of the inner activations.
    PlanProduct(p, products[p].gate->rows, cost(products[p]), kPanelGroup);
  }
  pool.ForEach(tasks_.size(), [&](size_t t) {
    const Task& task = tasks_[t];
    RunGatedRows(products[task.product], task.row_begin, task.row_end);
  });
}

void ProductRunner::RunWeightedSum(std::span<const WeightedProduct> terms,
                                   float* out, ThreadPool& pool) {
  CHECK(!terms.empty());
  const size_t rows = terms[0].weights->rows;
  const size_t num_tasks = pool.num_threads() * kTasksPerThread;
  const size_t step = ((rows + num_tasks - 1) / num_tasks + kRowGrain - 1) /
                      kRowGrain * kRowGrain;
  pool.ForEach((rows + step - 1) / step, [&](size_t t) {
    const size_t begin = t * step;
    const size_t width = std::min(rows, begin + step) - begin;
    auto* result = reinterpret_cast<float*>(
        ThreadScratch(Scratch::kFusedProduct, width * sizeof(float)));
    std::fill_n(out + begin, width, 0.0f);
    for (const WeightedProduct& term : terms) {
      MatMulRows(*term.weights, begin, begin + width, *term.x, {&term.row, 1},
                 result, width);
      AddScaled(result, term.weight, width, out + begin);
    }
  });
}

}  // namespace muster::kernels

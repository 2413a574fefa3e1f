#include "kernels/products.h"

#include <algorithm>

namespace muster::kernels {
namespace {

// Rows of a task are a multiple of this: whole cache lines of results.
constexpr size_t kRowGrain = 16;
// Tasks a thread: enough to even out, few enough to stream.
constexpr size_t kTasksPerThread = 4;

// Time is reading the weights plus computing on them; one token's compute hides
// behind the read, more tokens add to it.
double Cost(const Product& product) {
  const auto tokens = static_cast<double>(product.tokens.size());
  return static_cast<double>(product.weights->size_bytes()) *
         std::max(1.0, tokens / 4);
}

}  // namespace

void ProductRunner::Run(std::span<const Product> products, ThreadPool& pool) {
  double total = 0;
  for (const Product& product : products) total += Cost(product);
  const double per_task =
      total / static_cast<double>(pool.num_threads() * kTasksPerThread);
  tasks_.clear();
  for (uint32_t p = 0; p < products.size(); ++p) {
    const size_t rows = products[p].weights->rows;
    const auto wanted =
        static_cast<size_t>(Cost(products[p]) / std::max(per_task, 1.0)) + 1;
    const size_t step =
        ((rows + wanted - 1) / wanted + kRowGrain - 1) / kRowGrain * kRowGrain;
    for (size_t row = 0; row < rows; row += step) {
      tasks_.push_back({p, row, std::min(rows, row + step)});
    }
  }
  pool.ForEach(tasks_.size(), [&](size_t t) {
    const Task& task = tasks_[t];
    const Product& product = products[task.product];
    MatMulRows(*product.weights, task.row_begin, task.row_end, *product.x,
               product.tokens, product.out + task.row_begin,
               product.out_stride);
  });
}

}  // namespace muster::kernels

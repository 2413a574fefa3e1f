#include "runtime/next_experts.h"

#include <algorithm>

#include "kernels/matmul.h"
#include "kernels/rms_norm.h"

namespace muster::runtime {
namespace {

constexpr size_t kSampledRows = 64;

}  // namespace

std::span<const uint32_t> NextExperts::Guess(size_t layer, const float* hidden,
                                             size_t num_rows) {
  const model::LayerWeights& weights = model_.weights.layers[layer];
  const size_t dim = model_.config.model_dim;
  const size_t num_experts = weights.router.rows;
  const size_t num_sampled = std::min(num_rows, kSampledRows);
  normed_.resize(num_sampled * dim);
  logits_.resize(num_sampled * num_experts);
  for (size_t i = 0; i < num_sampled; ++i) {
    const size_t row = i * num_rows / num_sampled;
    kernels::RmsNorm(hidden + row * dim, weights.ffn_norm,
                     model_.config.rms_eps, dim, normed_.data() + i * dim);
  }
  const kernels::ActivationView x = {
      .x = normed_.data(), .num_rows = num_sampled, .cols = dim};
  kernels::MatMulRows(weights.router, 0, num_experts, x,
                      first_rows_(num_sampled), logits_.data(), num_experts);
  routing::Route(model_.config.layers[layer].router, logits_.data(), nullptr,
                 num_sampled, &routing_);
  counts_.assign(num_experts, 0);
  for (const uint32_t id : routing_.ids) ++counts_[id];
  ids_.clear();
  for (uint32_t id = 0; id < num_experts; ++id) {
    if (counts_[id] > 0) ids_.push_back(id);
  }
  std::stable_sort(ids_.begin(), ids_.end(), [&](uint32_t a, uint32_t b) {
    return counts_[a] > counts_[b];
  });
  return ids_;
}

}  // namespace muster::runtime

#include "routing/router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "kernels/elementwise.h"

namespace muster::routing {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

// logits -> scores in [0, 1], in place.
void Score(GatingFunction gating, float* x, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    // Infinity would make NaN of softmax; the largest float stands for it.
    x[i] = std::isnan(x[i]) ? kNever : std::min(x[i], kLargest);
  }
  switch (gating) {
    case GatingFunction::kSoftmax: {
      // All -inf has no softmax: nobody is better than anybody.
      const bool any =
          std::any_of(x, x + n, [](float v) { return v > kNever; });
      if (!any) return std::fill(x, x + n, 1.0f / static_cast<float>(n));
      return kernels::Softmax(x, n);
    }
    case GatingFunction::kSigmoid:
      return kernels::Sigmoid(x, n);
  }
}

}  // namespace

void Route(const RouterConfig& config, const float* logits,
           const float* selection_bias, size_t num_tokens, Routing* out) {
  const size_t num_experts = config.num_experts;
  const size_t top_k = config.top_k;
  CHECK(top_k >= 1 && top_k <= num_experts);
  out->num_tokens = num_tokens;
  out->top_k = top_k;
  out->ids.resize(num_tokens * top_k);
  out->weights.resize(num_tokens * top_k);
  std::vector<float> scores(num_experts);
  std::vector<float> keys(num_experts);
  std::vector<uint32_t> order(num_experts);
  for (size_t t = 0; t < num_tokens; ++t) {
    std::copy_n(logits + t * num_experts, num_experts, scores.begin());
    Score(config.gating, scores.data(), num_experts);
    for (size_t e = 0; e < num_experts; ++e) {
      keys[e] = scores[e] + (selection_bias ? selection_bias[e] : 0.0f);
      if (std::isnan(keys[e])) keys[e] = kNever;
    }
    std::iota(order.begin(), order.end(), 0u);
    std::partial_sort(order.begin(),
                      order.begin() + static_cast<std::ptrdiff_t>(top_k),
                      order.end(), [&](uint32_t a, uint32_t b) {
                        return keys[a] != keys[b] ? keys[a] > keys[b] : a < b;
                      });
    uint32_t* ids = out->ids.data() + t * top_k;
    float* weights = out->weights.data() + t * top_k;
    for (size_t s = 0; s < top_k; ++s) {
      ids[s] = order[s];
      weights[s] = scores[order[s]];
    }
    ScoresToWeights(config, {weights, top_k});
  }
}

void ScoresToWeights(const RouterConfig& config, std::span<float> scores) {
  float sum = 0;
  for (const float score : scores) sum += score;
  for (float& score : scores) {
    if (config.normalize_top_k && sum > 0) score /= sum;
    score *= config.scale;
  }
}

}  // namespace muster::routing

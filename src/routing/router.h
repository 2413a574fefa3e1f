// From a router's logits to the experts that each token takes and with what
// weight. Pure functions in float32; the same bits on every machine.
// Sources: Mixtral (Jiang et al., 2024), OLMoE (Muennighoff et al., 2024), the
// Qwen2-MoE and Qwen3-MoE models of transformers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::routing {

enum class GatingFunction : uint8_t { kSoftmax, kSigmoid };

struct RouterConfig {
  uint32_t num_experts = 1;
  uint32_t top_k = 1;
  GatingFunction gating = GatingFunction::kSoftmax;
  bool normalize_top_k = false;  // divide the chosen weights by their sum
  float scale = 1.0f;            // multiplies each weight, once, at the end
};

// The choice of a batch of tokens. Slot s of token t is at [t * top_k + s].
struct Routing {
  size_t num_tokens = 0;
  size_t top_k = 0;
  std::vector<uint32_t> ids;   // [num_tokens, top_k], by falling score
  std::vector<float> weights;  // [num_tokens, top_k]
};

// Scores all experts (softmax over all, or sigmoid of each), picks the top_k
// largest, ties to the lowest id; weights are the scores, renormalised and
// scaled as `config` says. NaN logits lose against everything;
// infinity counts as the largest float.
//   logits:         [num_tokens, num_experts]
//   selection_bias: [num_experts] added to scores for picking only, never to
//                   weights; nullptr: none
// Weights are in [0, scale] whatever the logits. The sum that normalises is
// taken in slot order; a sum of 0 is left alone.
// REQUIRES: 1 <= top_k <= num_experts.
void Route(const RouterConfig& config, const float* logits,
           const float* selection_bias, size_t num_tokens, Routing* out);

// The last step of Route, for one token: the scores of its experts, in slot
// order, become their weights.
void ScoresToWeights(const RouterConfig& config, std::span<float> scores);

}  // namespace muster::routing

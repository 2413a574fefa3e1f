#include "cli/bench/token_cost.h"

#include <algorithm>
#include <cmath>

#include "kernels/activations.h"
#include "kernels/kv_tiles.h"

namespace muster::cli {
namespace {

using runtime::Index;
using runtime::Phase;

// Bytes that a product with `w` reads.
double StreamBytes(const WeightView& w) {
  return static_cast<double>(w.size_bytes());
}

// One step of `tokens` through one matrix.
Cost ProductCost(const WeightView& w, double tokens) {
  if (w.empty()) return {};
  const double ops =
      2 * static_cast<double>(w.rows) * static_cast<double>(w.cols) * tokens;
  Cost cost = {.bytes = StreamBytes(w)};
  const kernels::ActivationForms form = kernels::FormRead(w.type);
  if (form.groups) cost.byte_ops = ops;
  if (form.bfloats) cost.bfloat_ops = ops;
  if (form.floats) cost.float_ops = ops;
  return cost;
}

// Experts that a step of `tokens` wakes when they choose evenly.
double DistinctExperts(double num_experts, double top_k, double tokens) {
  return num_experts * (1 - std::pow(1 - top_k / num_experts, tokens));
}

void AddExpert(const model::ExpertWeights& expert, double tokens, double share,
               PhaseCosts& costs) {
  costs[Index(Phase::kGateUp)] += share * ProductCost(expert.gate, tokens);
  costs[Index(Phase::kGateUp)] += share * ProductCost(expert.up, tokens);
  costs[Index(Phase::kDown)] += share * ProductCost(expert.down, tokens);
}

// Routed experts are alike but for their types: each counts with the chance
// that it is woken and the tokens that it then gets.
void AddExperts(const model::LayerConfig& config,
                const model::LayerWeights& weights, double tokens,
                PhaseCosts& costs) {
  if (!config.is_moe) {
    AddExpert(weights.experts.front(), tokens, 1, costs);
    return;
  }
  const auto num_experts = static_cast<double>(config.router.num_experts);
  const auto top_k = static_cast<double>(config.router.top_k);
  const double distinct = DistinctExperts(num_experts, top_k, tokens);
  for (const model::ExpertWeights& expert : weights.experts) {
    AddExpert(expert, tokens * top_k / distinct, distinct / num_experts, costs);
  }
}

// Scores and weighted values: two operations each for every element of a head
// at every position; keys and values are read once a step for all its tokens.
Cost AttentionCost(const model::ModelConfig& config, size_t layer,
                   kernels::KvType kv, double tokens, double positions) {
  const auto window = static_cast<double>(config.layers[layer].sliding_window);
  const double seen = window > 0 ? std::min(positions, window) : positions;
  const auto vectors = static_cast<double>(2 * config.num_kv_heads);
  return {
      .bytes = vectors * seen *
               static_cast<double>(kernels::KvVectorBytes(kv, config.head_dim)),
      .float_ops = 4 * static_cast<double>(config.q_dim()) * seen * tokens};
}

// One step of `tokens` that each see `positions`, without the head.
PhaseCosts StepCost(const runtime::LoadedModel& model, kernels::KvType kv,
                    double tokens, double positions) {
  PhaseCosts costs = {};
  for (size_t l = 0; l < model.config.layers.size(); ++l) {
    const model::LayerWeights& weights = model.weights.layers[l];
    for (const WeightView* w : {&weights.q, &weights.k, &weights.v}) {
      costs[Index(Phase::kQkv)] += ProductCost(*w, tokens);
    }
    costs[Index(Phase::kAttention)] +=
        AttentionCost(model.config, l, kv, tokens, positions);
    costs[Index(Phase::kOutput)] += ProductCost(weights.o, tokens);
    costs[Index(Phase::kRouter)] += ProductCost(weights.router, tokens);
    costs[Index(Phase::kRouter)] += ProductCost(weights.shared_router, tokens);
    AddExperts(model.config.layers[l], weights, tokens, costs);
    AddExpert(weights.shared, tokens, 1, costs);
  }
  return costs;
}

}  // namespace

Cost& Cost::operator+=(const Cost& other) {
  bytes += other.bytes;
  byte_ops += other.byte_ops;
  bfloat_ops += other.bfloat_ops;
  float_ops += other.float_ops;
  return *this;
}

Cost operator*(double times, Cost cost) {
  return {times * cost.bytes, times * cost.byte_ops, times * cost.bfloat_ops,
          times * cost.float_ops};
}

Cost Sum(const PhaseCosts& costs) {
  Cost sum;
  for (const Cost& cost : costs) sum += cost;
  return sum;
}

PhaseCosts DecodeCost(const runtime::LoadedModel& model, kernels::KvType kv,
                      double positions) {
  PhaseCosts costs = StepCost(model, kv, 1, positions);
  costs[Index(Phase::kHead)] = ProductCost(model.weights.output, 1);
  return costs;
}

PhaseCosts PrefillCost(const runtime::LoadedModel& model, kernels::KvType kv,
                       size_t depth, size_t num_tokens, size_t chunk_tokens) {
  PhaseCosts costs = {};
  for (size_t begin = 0; begin < num_tokens; begin += chunk_tokens) {
    const auto tokens =
        static_cast<double>(std::min(chunk_tokens, num_tokens - begin));
    const double positions =
        static_cast<double>(depth + begin) + (tokens + 1) / 2;
    const PhaseCosts step = StepCost(model, kv, tokens, positions);
    for (size_t p = 0; p < costs.size(); ++p) costs[p] += step[p];
  }
  costs[Index(Phase::kHead)] = ProductCost(model.weights.output, 1);
  return costs;
}

}  // namespace muster::cli

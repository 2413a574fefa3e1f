#include "model/parameters.h"

namespace muster::model {
namespace {

uint64_t Count(std::initializer_list<const MatrixRef*> refs) {
  uint64_t count = 0;
  for (const MatrixRef* ref : refs) count += ref->num_elements();
  return count;
}

LayerParameters CountLayer(const LayerConfig& config, const LayerRefs& refs) {
  LayerParameters layer;
  layer.shared = refs.shared.num_elements();
  layer.always_on =
      layer.shared +
      Count({&refs.attn_norm, &refs.ffn_norm, &refs.q, &refs.k, &refs.v,
             &refs.o, &refs.q_bias, &refs.k_bias, &refs.v_bias, &refs.q_norm,
             &refs.k_norm, &refs.router, &refs.shared_router});
  uint64_t experts = 0;
  for (const ExpertRefs& expert : refs.experts) {
    experts += expert.num_elements();
  }
  if (!config.is_moe) {
    layer.always_on += experts;
    return layer;
  }
  layer.routed = experts;
  layer.num_experts = config.router.num_experts;
  layer.top_k = config.router.top_k;
  layer.per_expert = experts / layer.num_experts;
  return layer;
}

}  // namespace

ParameterCounts CountParameters(const ModelConfig& config,
                                const WeightIndex& index) {
  ParameterCounts counts;
  counts.always_on = Count({&index.token_embedding, &index.output_norm,
                            &index.output, &index.rope_freqs});
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const LayerParameters layer = CountLayer(config.layers[i], index.layers[i]);
    counts.always_on += layer.always_on;
    counts.shared += layer.shared;
    counts.routed += layer.routed;
    counts.active += layer.top_k * layer.per_expert;
    counts.layers.push_back(layer);
  }
  counts.total = counts.always_on + counts.routed;
  counts.active += counts.always_on;
  return counts;
}

}  // namespace muster::model

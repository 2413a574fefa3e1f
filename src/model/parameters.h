// How many parameters a model has and how many of them one token uses, counted
// from the tensors of the file.
#pragma once

#include <cstdint>
#include <vector>

#include "model/config.h"
#include "model/weight_index.h"

namespace muster::model {

struct LayerParameters {
  uint64_t always_on = 0;    // attention, norms, router, shared, dense
  uint64_t shared = 0;       // the part of always_on that is the shared expert
  uint64_t routed = 0;       // all routed experts together
  uint64_t per_expert = 0;   // one routed expert; 0 in a dense layer
  uint32_t num_experts = 0;  // 0 in a dense layer
  uint32_t top_k = 0;
};

// active = always_on + sum over layers of top_k * routed / num_experts.
// The embedding table and the output head count as always on, once when tied.
struct ParameterCounts {
  uint64_t total = 0;
  uint64_t always_on = 0;
  uint64_t shared = 0;
  uint64_t routed = 0;
  uint64_t active = 0;
  std::vector<LayerParameters> layers;

  double active_share() const {
    return static_cast<double>(active) / static_cast<double>(total);
  }
};

ParameterCounts CountParameters(const ModelConfig& config,
                                const WeightIndex& index);

}  // namespace muster::model

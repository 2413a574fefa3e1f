// The routed experts of a model under one numbering, and how large each is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "experts/eviction_policy.h"
#include "routing/expert_id.h"
#include "tensor/expert_layout.h"

namespace muster::experts {

// Experts are numbered layer after layer; a dense layer has none. Immutable.
class ExpertTable {
 public:
  struct Layer {
    uint32_t num_experts = 0;  // 0: a dense layer
    uint32_t top_k = 0;        // that a token takes
    ExpertLayout layout;
  };

  explicit ExpertTable(std::vector<Layer> layers);

  uint32_t num_layers() const { return static_cast<uint32_t>(layers_.size()); }
  uint32_t num_experts() const { return first_.back(); }
  const Layer& layer(uint32_t layer) const { return layers_[layer]; }

  uint32_t Number(routing::ExpertId id) const {
    return first_[id.layer] + id.index;
  }
  routing::ExpertId IdOf(uint32_t expert) const {
    return {layer_of_[expert], expert - first_[layer_of_[expert]]};
  }
  const ExpertLayout& LayoutOf(uint32_t expert) const {
    return layers_[layer_of_[expert]].layout;
  }
  size_t SizeBytes(uint32_t expert) const {
    return LayoutOf(expert).size_bytes;
  }
  PolicyShape Shape() const;

  uint64_t total_bytes() const;  // of all experts
  // That one token needs: top_k experts of each layer.
  uint64_t token_bytes() const;

 private:
  std::vector<Layer> layers_;
  std::vector<uint32_t> first_;     // [layers + 1]
  std::vector<uint32_t> layer_of_;  // [experts]
};

}  // namespace muster::experts

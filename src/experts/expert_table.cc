#include "experts/expert_table.h"

namespace muster::experts {

ExpertTable::ExpertTable(std::vector<Layer> layers)
    : layers_(std::move(layers)) {
  first_.push_back(0);
  for (uint32_t l = 0; l < layers_.size(); ++l) {
    first_.push_back(first_.back() + layers_[l].num_experts);
    layer_of_.resize(first_.back(), l);
  }
}

PolicyShape ExpertTable::Shape() const {
  return {.num_layers = num_layers(),
          .num_experts = num_experts(),
          .layer_of = layer_of_};
}

uint64_t ExpertTable::total_bytes() const {
  uint64_t total = 0;
  for (const Layer& layer : layers_) {
    total += uint64_t{layer.num_experts} * layer.layout.size_bytes;
  }
  return total;
}

uint64_t ExpertTable::token_bytes() const {
  uint64_t total = 0;
  for (const Layer& layer : layers_) {
    total += uint64_t{layer.top_k} * layer.layout.size_bytes;
  }
  return total;
}

}  // namespace muster::experts

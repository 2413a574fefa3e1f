// Which experts the next layer will call, by its router on what this layer has:
// the residual stream changes little from one layer to the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "routing/router.h"
#include "runtime/first_numbers.h"
#include "runtime/loaded_model.h"

namespace muster::runtime {

// One thread at a time.
class NextExperts {
 public:
  // `model` must outlive it.
  explicit NextExperts(const LoadedModel& model) : model_(model) {}

  // Experts that some of the rows will call, the most called first. Looks at a
  // sample of the rows. Valid until the next call.
  // REQUIRES: the layer has a router.
  //   hidden: [num_rows, model_dim], the residual stream
  std::span<const uint32_t> Guess(size_t layer, const float* hidden,
                                  size_t num_rows);

 private:
  const LoadedModel& model_;
  FirstNumbers first_rows_;
  std::vector<float> normed_;     // [sampled rows, model_dim]
  std::vector<float> logits_;     // [sampled rows, num_experts]
  std::vector<uint32_t> counts_;  // [num_experts]
  std::vector<uint32_t> ids_;
  routing::Routing routing_;
};

}  // namespace muster::runtime

// Which experts the next layers will call, by their routers on what this layer
// has: the residual stream changes little from one layer to the next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "experts/expert_tiers.h"
#include "kernels/products.h"
#include "routing/expert_id.h"
#include "routing/router.h"
#include "runtime/first_numbers.h"
#include "runtime/loaded_model.h"

namespace muster::runtime {

// Asked in two steps, so that its products run beside those of the layer's own
// router. One thread at a time.
class NextExperts {
 public:
  // `model` must outlive it.
  explicit NextExperts(const LoadedModel& model) : model_(model) {}

  // Adds the products that ask the routers of up to so many layers behind this
  // one: fewer at the model's end, none of a layer without a router. Looks at a
  // sample of the rows.
  //   hidden: [num_rows, model_dim], the residual stream
  void Ask(size_t layer, size_t layers_ahead, const float* hidden,
           size_t num_rows, std::vector<kernels::Product>& products);

  // What was asked last: experts that some of the rows will call, the nearest
  // layer's first and of a layer the most wanted first. Valid until the next
  // call. REQUIRES: the products have run.
  std::span<const routing::ExpertId> Answer();

 private:
  struct Question {
    size_t layer = 0;
    std::vector<float> normed;  // [sampled rows, model_dim]
    std::vector<float> logits;  // [sampled rows, num_experts]
    kernels::ActivationView x;  // normed
  };

  void AnswerOne(const Question& question);

  const LoadedModel& model_;
  FirstNumbers first_rows_;
  // Products point into it.
  std::array<Question, experts::ExpertTiers::kMostLayersAhead> questions_;
  size_t num_questions_ = 0;
  std::vector<float> wanted_;  // [num_experts]
  std::vector<uint32_t> ids_;
  std::vector<routing::ExpertId> answer_;
  routing::Routing routing_;
};

}  // namespace muster::runtime

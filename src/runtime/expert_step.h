// The feed-forward part of one layer for a batch: which experts each row takes,
// their products, and the weighted sum. A dense layer is one expert that every
// row takes with weight 1.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "kernels/activations.h"
#include "kernels/products.h"
#include "routing/grouping.h"
#include "runtime/engine_options.h"
#include "runtime/first_numbers.h"
#include "runtime/loaded_model.h"
#include "runtime/next_experts.h"
#include "runtime/phase_clock.h"
#include "runtime/prefetch_governor.h"
#include "runtime/step_record.h"

namespace muster::runtime {

// Owns the scratch memory; grows to the largest batch that it has seen. The
// result of a row depends on its sequence alone: not on the other rows, nor on
// which experts were in memory and in what order the others came. With a
// RoutingChoice it depends on the number of rows and on which experts were in
// memory, too.
// One thread at a time; uses `pool` inside.
class ExpertStep {
 public:
  // `model` and `pool` must outlive this object.
  ExpertStep(const LoadedModel& model, ThreadPool& pool,
             const RoutingChoice& choice, std::optional<uint32_t> layers_ahead);

  // Around the calls of Run for the layers of one step.
  void BeginStep(size_t num_rows);
  void EndStep();

  // For a caller that computes something else: lets reads go on.
  void Pump();

  const PrefetchGovernor& prefetch() const { return prefetch_; }

  // out = routed experts + shared expert. Fails when an expert cannot be had
  // from any tier; never for a model that is in memory.
  //   hidden: [num_rows, model_dim], before the norm: to guess with
  //   normed: [num_rows, model_dim];   out: [num_rows, model_dim]
  Status Run(size_t layer, const float* hidden, const float* normed,
             size_t num_rows, const StepRecord& record, PhaseClock& clock,
             float* out);

 private:
  // Results of gate and up, in the forms that the down products read.
  struct Inner {
    kernels::ActivationView view;
    float* x = nullptr;
    kernels::ActivationGroup* groups = nullptr;
    uint16_t* bfloats = nullptr;
  };
  // Which forms of vectors a layer's routed experts read and leave.
  struct Forms {
    kernels::ActivationForms in;
    kernels::ActivationForms inner;
  };
  // What a call of Run works on.
  struct Turn {
    size_t layer = 0;
    const float* hidden = nullptr;  // [num_rows, model_dim]
    const float* normed = nullptr;  // [num_rows, model_dim]
    size_t num_rows = 0;
    bool has_shared = false;
    kernels::ActivationView x;  // normed, as the experts read it
    float* out = nullptr;       // [num_rows, model_dim]
  };

  static std::vector<Forms> FormsOf(const LoadedModel& model);
  void Route(const StepRecord& record);
  void ChooseExperts();
  void GroupPairs();
  void AllowCopies();
  Status RunTieredExperts(PhaseClock& clock);
  void GuessNextLayers();
  void CountForeseen();
  void PrepareInputs();
  void PrepareInner();
  // `groups`: positions in groups_.expert_ids.
  void GateAndUp(std::span<const uint32_t> groups, bool with_shared);
  void Down(std::span<const uint32_t> groups, bool with_shared);
  void SumOfOneRow();
  void SumOfRows();

  const model::LayerWeights& Weights() const {
    return model_.weights.layers[turn_.layer];
  }
  const model::LayerConfig& Config() const {
    return model_.config.layers[turn_.layer];
  }
  // Of group g. REQUIRES: it is in memory.
  const model::ExpertWeights& Expert(size_t g) const;
  std::span<const uint32_t> TokensOf(size_t g) const;
  static Inner MakeInner(size_t num_rows, size_t cols,
                         const kernels::ActivationForms& forms,
                         kernels::Activations& activations,
                         std::vector<float>& buffer);
  kernels::GatedProduct Gated(const model::ExpertWeights& expert,
                              std::span<const uint32_t> tokens,
                              const Inner& inner, size_t first_row) const;
  void CountParameters(const model::ExpertWeights& expert, size_t num_tokens);

  const LoadedModel& model_;
  ThreadPool& pool_;
  const RoutingChoice choice_;
  std::vector<Forms> forms_;  // [layers]
  kernels::ProductRunner products_;
  kernels::Activations activations_;        // of the rows
  kernels::Activations inner_activations_;  // of experts' inner vectors
  kernels::Activations shared_activations_;

  Turn turn_;
  uint64_t routed_parameters_ = 0;  // weights times tokens, of this turn
  FirstNumbers first_numbers_;
  routing::Routing routing_;
  routing::ExpertGroups groups_;
  std::vector<uint32_t> group_sizes_;   // [groups], tokens of each
  std::vector<uint32_t> pair_of_slot_;  // [rows, top_k] -> row of expert_out_
  std::vector<float> router_logits_;    // [rows, num_experts]
  std::vector<uint8_t> in_memory_;      // [num_experts], of this layer
  std::vector<uint8_t> in_tail_;        // [rows, top_k]
  std::vector<uint8_t> may_be_copies_;  // [groups]; empty: none may
  NextExperts next_experts_;
  PrefetchGovernor prefetch_;
  size_t layers_ahead_ = 0;  // whose experts this step guesses
  std::chrono::steady_clock::time_point step_start_;
  size_t step_rows_ = 0;
  // Of the next layer with a router, as one before it has guessed; empty: none
  // has.
  std::vector<uint8_t> is_foreseen_;                 // [num_experts]
  std::vector<float> shared_scale_;                  // [rows]
  Inner expert_inner_, shared_inner_;                // [pairs or rows, ff_dim]
  std::vector<float> inner_floats_, shared_floats_;  // their floats, if any
  std::vector<float> expert_out_;                    // [pairs, model_dim]
  std::vector<float> shared_out_;                    // [rows, model_dim]
  std::vector<kernels::Product> product_list_;
  std::vector<kernels::GatedProduct> gated_list_;
  std::vector<kernels::WeightedProduct> term_list_;
};

}  // namespace muster::runtime

// One step of the model: a batch of tokens in, logits out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/activations.h"
#include "kernels/products.h"
#include "routing/grouping.h"
#include "runtime/attention_step.h"
#include "runtime/batch_row.h"
#include "runtime/loaded_model.h"
#include "runtime/phase_clock.h"
#include "runtime/step_record.h"

namespace muster::runtime {

// Owns the activations of a step; grows to the largest batch that it has seen.
// The result of a row depends on its sequence alone: not on the other rows, on
// how the prompt was cut into batches, or on the number of threads.
// One thread at a time; uses `pool` inside.
class Forward {
 public:
  // `model` and `pool` must outlive this object. Positions go up to
  // `context_length`.
  Forward(const LoadedModel& model, ThreadPool& pool, size_t context_length);

  // logits: [rows that want them, vocab_size], in row order; may be null when
  // none does.
  void Run(std::span<const BatchRow> batch, float* logits,
           const StepRecord& record);

 private:
  void Embed(std::span<const BatchRow> batch);
  void Attention(size_t layer, std::span<const BatchRow> batch);
  void ProjectQkv(size_t layer);
  void FeedForward(size_t layer, const StepRecord& record);
  void Route(size_t layer, const StepRecord& record);
  // Results of gate and up, in the forms that the down products read.
  struct Inner {
    kernels::ActivationView view;
    float* x = nullptr;
    kernels::ActivationGroup* groups = nullptr;
  };
  static Inner MakeInner(size_t num_rows, size_t cols, bool quantized,
                         bool floats, kernels::Activations& activations,
                         std::vector<float>& buffer);
  static kernels::GatedProduct Gated(const model::ExpertWeights& expert,
                                     const kernels::ActivationView& x,
                                     std::span<const uint32_t> tokens,
                                     const Inner& inner, size_t first_row);
  static bool ReadsQuantizedIn(const model::ExpertWeights& expert);
  void GateAndUp(size_t layer);
  void SumExpertsOfOneRow(size_t layer);
  void SumExpertsOfRows(size_t layer);
  void CountParameters(const model::ExpertWeights& expert, size_t num_tokens);
  // The row numbers 0 .. count - 1. Valid until a call with a larger count.
  std::span<const uint32_t> FirstRows(size_t count);
  void Head(std::span<const BatchRow> batch, float* logits);

  void Normalize(const float* scale);  // hidden_ -> normed_, all rows
  void Multiply(const kernels::ActivationView& x, const WeightView& w,
                float* out);

  const LoadedModel& model_;
  const model::ModelConfig& config_;
  ThreadPool& pool_;
  AttentionStep attention_;
  kernels::ProductRunner products_;
  kernels::Activations activations_;        // of normed_ or attention output
  kernels::Activations inner_activations_;  // of experts' inner vectors
  kernels::Activations shared_activations_;
  PhaseClock clock_;
  size_t num_rows_ = 0;
  uint64_t routed_parameters_ = 0;  // weights times tokens, of this step

  std::vector<uint32_t> row_numbers_;  // 0, 1, 2, ...
  std::vector<float> hidden_;          // [rows, model_dim], the residual stream
  std::vector<float> normed_;          // [rows, model_dim]
  std::vector<float> q_, k_, v_;       // [rows, q_dim or kv_dim]
  std::vector<float> attended_;        // [rows, q_dim]
  std::vector<float> projected_;       // [rows, model_dim]
  routing::Routing routing_;
  routing::ExpertGroups groups_;
  std::vector<uint32_t> pair_of_slot_;  // [rows, top_k] -> row of expert_out_
  std::vector<float> router_logits_;    // [rows, num_experts]
  std::vector<float> shared_scale_;     // [rows]
  Inner expert_inner_, shared_inner_;   // [pairs or rows, ff_dim]
  std::vector<float> inner_floats_, shared_floats_;  // their floats, if any
  std::vector<float> expert_out_;                    // [pairs, model_dim]
  std::vector<float> shared_out_;                    // [rows, model_dim]
  std::vector<kernels::Product> product_list_;
  std::vector<kernels::GatedProduct> gated_list_;
  std::vector<kernels::WeightedProduct> term_list_;
};

}  // namespace muster::runtime

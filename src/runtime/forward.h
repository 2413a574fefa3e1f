// One step of the model: a batch of tokens in, logits out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "kernels/activations.h"
#include "kernels/products.h"
#include "runtime/attention_step.h"
#include "runtime/batch_row.h"
#include "runtime/expert_step.h"
#include "runtime/first_numbers.h"
#include "runtime/loaded_model.h"
#include "runtime/phase_clock.h"
#include "runtime/step_record.h"

namespace muster::runtime {

// Owns the activations of a step; grows to the largest batch that it has seen.
// The result of a row depends on its sequence alone: not on the other rows, on
// how the prompt was cut into batches, or on the number of threads. See
// ExpertStep for what cache-aware routing changes about that. One thread at a
// time; uses `pool` inside.
class Forward {
 public:
  // `model` and `pool` must outlive this object. Positions go up to
  // `context_length`.
  Forward(const LoadedModel& model, ThreadPool& pool, size_t context_length,
          const RoutingChoice& choice = {},
          std::optional<uint32_t> layers_ahead = {});

  // Fails when an expert cannot be had from any tier: the rows' caches hold
  // rubbish at their positions then, and `logits` is undefined.
  //   logits: [rows that want them, vocab_size], in row order; may be null when
  //   none does
  Status Run(std::span<const BatchRow> batch, float* logits,
             const StepRecord& record);

  // How it decides about guesses of experts.
  const PrefetchGovernor& prefetch() const { return experts_.prefetch(); }

 private:
  Status Embed(std::span<const BatchRow> batch);
  void Attention(size_t layer, std::span<const BatchRow> batch);
  void ProjectQkv(size_t layer);
  Status FeedForward(size_t layer, const StepRecord& record);
  void Head(std::span<const BatchRow> batch, float* logits);

  void Normalize(const float* scale);  // hidden_ -> normed_, all rows
  void Multiply(const kernels::ActivationView& x, const WeightView& w,
                float* out);

  const LoadedModel& model_;
  const model::ModelConfig& config_;
  ThreadPool& pool_;
  AttentionStep attention_;
  ExpertStep experts_;
  kernels::ProductRunner products_;
  kernels::Activations activations_;  // of normed_ or attention output
  PhaseClock clock_;
  size_t num_rows_ = 0;

  std::vector<Status> row_status_;  // [rows]
  FirstNumbers first_rows_;
  std::vector<float> hidden_;     // [rows, model_dim], the residual stream
  std::vector<float> normed_;     // [rows, model_dim]
  std::vector<float> q_, k_, v_;  // [rows, q_dim or kv_dim]
  std::vector<float> attended_;   // [rows, q_dim]
  std::vector<float> projected_;  // [rows, model_dim]
};

}  // namespace muster::runtime

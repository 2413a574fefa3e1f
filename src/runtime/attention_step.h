// Attention of one layer for a batch: head norms, rotation, storing keys and
// values, and what each row sees of its sequence.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/rope.h"
#include "model/config.h"
#include "runtime/batch_row.h"

namespace muster::runtime {

// A layer's inputs and outputs.
struct AttentionOperands {
  const float* q_norm = nullptr;  // [head_dim or q_dim], as qk_norm says
  const float* k_norm = nullptr;  // [head_dim or kv_dim]
  float* q = nullptr;             // [rows, q_dim]; normalised and turned
  float* k = nullptr;             // [rows, kv_dim]; normalised and turned
  const float* v = nullptr;       // [rows, kv_dim]
  float* out = nullptr;           // [rows, q_dim]
};

// Owns the scratch memory; grows to the largest batch that it has seen. The
// result of a row depends on its sequence alone.
// One thread at a time; uses `pool` inside.
class AttentionStep {
 public:
  // `config` and `pool` must outlive this object. Positions go up to
  // `context_length`.
  AttentionStep(const model::ModelConfig& config, ThreadPool& pool,
                size_t context_length);

  // Stores the rows' keys and values in their caches, then attends.
  void Run(size_t layer, std::span<const BatchRow> batch,
           const AttentionOperands& operands);

 private:
  void RotateAndStore(size_t layer, std::span<const BatchRow> batch,
                      const AttentionOperands& operands);
  void Attend(size_t layer, std::span<const BatchRow> batch,
              const AttentionOperands& operands);

  const model::ModelConfig& config_;
  ThreadPool& pool_;
  kernels::RopeTable rope_;
  std::vector<std::vector<float>> scores_;  // one per task of Attend
};

}  // namespace muster::runtime

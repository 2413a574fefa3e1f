// Attention of one layer for a batch: head norms, rotation, storing keys and
// values, and what each row sees of its sequence.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/rope.h"
#include "model/config.h"
#include "runtime/attention_plan.h"
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
  // Memory of one thread while it runs a task.
  struct Scratch {
    std::vector<float> packed;    // [queries, head_dim]
    std::vector<float> partials;  // [queries, PartialFloats]
    std::vector<float> states;    // [queries, PartialFloats]
  };

  void RotateAndStore(size_t layer, std::span<const BatchRow> batch,
                      const AttentionOperands& operands);
  void Attend(size_t layer, std::span<const BatchRow> batch,
              const AttentionOperands& operands);
  kernels::QueryTile Queries(const AttentionTask& task, const float* q) const;
  // A KV head of one layer of a sequence.
  struct CachedHead {
    const KvCache& cache;
    size_t layer;
    size_t kv_head;
    kernels::KvHeadView Block(size_t block) const {
      return cache.Block(layer, kv_head, block);
    }
  };
  void RunWhole(const kernels::QueryTile& tile, const CachedHead& head,
                const AttentionTask& task, Scratch* scratch, float* out) const;
  void RunPart(const kernels::QueryTile& tile, const CachedHead& head,
               const AttentionTask& task, Scratch* scratch, float* out);

  const model::ModelConfig& config_;
  ThreadPool& pool_;
  kernels::RopeTable rope_;
  float scale_;  // of scores
  AttentionPlan plan_;
  std::vector<Scratch> scratch_;       // [threads]
  std::vector<float> split_partials_;  // of tiles that several tasks share
  // Tasks of each split tile that have yet to end: the last one merges.
  std::vector<std::atomic<size_t>> tasks_left_;
};

}  // namespace muster::runtime

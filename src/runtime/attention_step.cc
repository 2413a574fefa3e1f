#include "runtime/attention_step.h"

#include <algorithm>
#include <cmath>

#include "kernels/rms_norm.h"

namespace muster::runtime {

using kernels::QueryTile;

namespace {

// In place, on each head or on all of them as one vector.
void NormalizeHeads(model::QkNorm kind, const float* scale, float eps,
                    size_t num_heads, size_t head_dim, float* heads) {
  switch (kind) {
    case model::QkNorm::kNone:
      return;
    case model::QkNorm::kWholeProjection:
      kernels::RmsNorm(heads, scale, eps, num_heads * head_dim, heads);
      return;
    case model::QkNorm::kPerHead:
      for (size_t h = 0; h < num_heads; ++h) {
        float* head = heads + h * head_dim;
        kernels::RmsNorm(head, scale, eps, head_dim, head);
      }
      return;
  }
}

// Grows `floats` to `size` and returns its start.
float* AtLeast(std::vector<float>* floats, size_t size) {
  if (floats->size() < size) floats->resize(size);
  return floats->data();
}

}  // namespace

AttentionStep::AttentionStep(const model::ModelConfig& config, ThreadPool& pool,
                             size_t context_length)
    : config_(config),
      pool_(pool),
      rope_(model::RopeInverseFrequencies(config.rope),
            model::RopeMagnitude(config.rope), context_length),
      scale_(1.0f / std::sqrt(static_cast<float>(config.head_dim))),
      scratch_(pool.num_threads()) {}

void AttentionStep::Run(size_t layer, std::span<const BatchRow> batch,
                        const AttentionOperands& operands) {
  RotateAndStore(layer, batch, operands);
  Attend(layer, batch, operands);
}

void AttentionStep::RotateAndStore(size_t layer,
                                   std::span<const BatchRow> batch,
                                   const AttentionOperands& operands) {
  const size_t head_dim = config_.head_dim;
  // Ranges: rows that follow each other share a tile's cache lines.
  pool_.ForRange(batch.size(), 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      float* q = operands.q + row * config_.q_dim();
      float* k = operands.k + row * config_.kv_dim();
      NormalizeHeads(config_.qk_norm, operands.q_norm, config_.rms_eps,
                     config_.num_heads, head_dim, q);
      NormalizeHeads(config_.qk_norm, operands.k_norm, config_.rms_eps,
                     config_.num_kv_heads, head_dim, k);
      const size_t position = batch[row].position;
      kernels::ApplyRope(rope_, config_.rope.pairing, position,
                         config_.num_heads, head_dim, q);
      kernels::ApplyRope(rope_, config_.rope.pairing, position,
                         config_.num_kv_heads, head_dim, k);
      batch[row].kv->Store(layer, position, k,
                           operands.v + row * config_.kv_dim());
    }
  });
}

void AttentionStep::Attend(size_t layer, std::span<const BatchRow> batch,
                           const AttentionOperands& operands) {
  plan_.Make(batch, {.heads_per_kv = config_.num_heads / config_.num_kv_heads,
                     .num_kv_heads = config_.num_kv_heads,
                     .head_dim = config_.head_dim,
                     .window = config_.layers[layer].sliding_window,
                     .num_threads = pool_.num_threads()});
  AtLeast(&split_partials_, plan_.split_floats());
  const std::vector<size_t>& split_sizes = plan_.split_sizes();
  tasks_left_ = std::vector<std::atomic<size_t>>(split_sizes.size());
  for (size_t i = 0; i < split_sizes.size(); ++i) {
    tasks_left_[i].store(split_sizes[i], std::memory_order_relaxed);
  }
  // Each thread has its own scratch and takes the next task when it is free.
  std::atomic<size_t> next_task{0};
  pool_.ForEach(pool_.num_threads(), [&](size_t thread) {
    while (true) {
      const size_t at = next_task.fetch_add(1, std::memory_order_relaxed);
      if (at >= plan_.tasks().size()) return;
      const AttentionTask& task = plan_.tasks()[at];
      const size_t first_float = task.first_row * config_.q_dim() +
                                 task.kv_head * config_.head_dim *
                                     (config_.num_heads / config_.num_kv_heads);
      const QueryTile tile = Queries(task, operands.q + first_float);
      const CachedHead head = {*batch[task.first_row].kv, layer, task.kv_head};
      float* out = operands.out + first_float;
      if (task.split == kNotSplit) {
        RunWhole(tile, head, task, &scratch_[thread], out);
      } else {
        RunPart(tile, head, task, &scratch_[thread], out);
      }
    }
  });
}

QueryTile AttentionStep::Queries(const AttentionTask& task,
                                 const float* q) const {
  return {.q = q,
          .row_stride = config_.q_dim(),
          .num_heads = config_.num_heads / config_.num_kv_heads,
          .ranges = plan_.ranges().data() + task.first_row,
          .num_rows = task.num_rows,
          .head_dim = config_.head_dim};
}

void AttentionStep::RunWhole(const QueryTile& tile, const CachedHead& head,
                             const AttentionTask& task, Scratch* scratch,
                             float* out) const {
  const size_t floats =
      tile.num_queries() * kernels::PartialFloats(tile.head_dim);
  float* packed = AtLeast(&scratch->packed, tile.num_queries() * tile.head_dim);
  float* partials = AtLeast(&scratch->partials, floats);
  float* states = AtLeast(&scratch->states, floats);
  kernels::PackQueries(tile, scale_, packed);
  kernels::ClearStates(tile, states);
  for (size_t block = task.first_block; block < task.end_block; ++block) {
    kernels::AttendBlock(tile, packed, head.Block(block), block, partials);
    kernels::MergeBlock(tile, block, partials, states);
  }
  kernels::FinishStates(tile, states, out);
}

// The task that ends last merges the whole tile, in the order of blocks.
void AttentionStep::RunPart(const QueryTile& tile, const CachedHead& head,
                            const AttentionTask& task, Scratch* scratch,
                            float* out) {
  const size_t floats =
      tile.num_queries() * kernels::PartialFloats(tile.head_dim);
  float* packed = AtLeast(&scratch->packed, tile.num_queries() * tile.head_dim);
  kernels::PackQueries(tile, scale_, packed);
  float* partials = split_partials_.data() + task.partials_offset;
  const auto of_block = [&](size_t block) {
    return partials + (block - task.tile_first_block) * floats;
  };
  for (size_t block = task.first_block; block < task.end_block; ++block) {
    kernels::AttendBlock(tile, packed, head.Block(block), block,
                         of_block(block));
  }
  if (tasks_left_[task.split].fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return;
  }
  float* states = AtLeast(&scratch->states, floats);
  kernels::ClearStates(tile, states);
  for (size_t block = task.tile_first_block; block < task.tile_end_block;
       ++block) {
    kernels::MergeBlock(tile, block, of_block(block), states);
  }
  kernels::FinishStates(tile, states, out);
}

}  // namespace muster::runtime

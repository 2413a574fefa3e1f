#include "runtime/attention_step.h"

#include <algorithm>
#include <cmath>

#include "kernels/rms_norm.h"

namespace muster::runtime {

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

}  // namespace

AttentionStep::AttentionStep(const model::ModelConfig& config, ThreadPool& pool,
                             size_t context_length)
    : config_(config),
      pool_(pool),
      rope_(model::RopeInverseFrequencies(config.rope),
            model::RopeMagnitude(config.rope), context_length) {}

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
  const size_t heads = config_.num_heads;
  const size_t heads_per_kv = heads / config_.num_kv_heads;
  const size_t window = config_.layers[layer].sliding_window;
  const float scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  const size_t num_tasks = batch.size() * heads;
  // A task's scratch belongs to a range of tasks, not to a thread.
  const size_t ranges = std::min(num_tasks, pool_.num_threads() * 4);
  scores_.resize(std::max(scores_.size(), ranges));
  pool_.ForEach(ranges, [&](size_t range) {
    std::vector<float>& scores = scores_[range];
    for (size_t task = range; task < num_tasks; task += ranges) {
      const size_t row = task / heads;
      const size_t head = task % heads;
      const size_t end = batch[row].position + 1;
      const size_t begin = window != 0 && end > window ? end - window : 0;
      scores.resize(std::max(scores.size(), end - begin));
      const size_t at = row * config_.q_dim() + head * config_.head_dim;
      kernels::AttendHead(operands.q + at,
                          batch[row].kv->Head(layer, head / heads_per_kv),
                          begin, end, scale, scores.data(), operands.out + at);
    }
  });
}

}  // namespace muster::runtime

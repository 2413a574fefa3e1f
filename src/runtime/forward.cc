#include "runtime/forward.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "kernels/attention.h"
#include "kernels/dequantize.h"
#include "kernels/elementwise.h"
#include "kernels/rms_norm.h"
#include "routing/router.h"

namespace muster::runtime {

using kernels::ActivationView;
using kernels::Product;
using model::ExpertWeights;
using model::LayerWeights;

void Forward::Run(std::span<const BatchRow> batch, float* logits,
                  const StepRecord& record) {
  num_rows_ = batch.size();
  routed_parameters_ = 0;
  Embed(batch);
  for (size_t layer = 0; layer < config_.layers.size(); ++layer) {
    Attention(layer, batch);
    FeedForward(layer, record);
  }
  Head(batch, logits);
  if (record.routed_parameters != nullptr) {
    *record.routed_parameters += routed_parameters_;
  }
}

Forward::Forward(const LoadedModel& model, ThreadPool& pool,
                 size_t context_length)
    : model_(model),
      config_(model.config),
      pool_(pool),
      rope_(model::RopeInverseFrequencies(model.config.rope),
            model::RopeMagnitude(model.config.rope), context_length) {}

void Forward::Embed(std::span<const BatchRow> batch) {
  hidden_.resize(num_rows_ * config_.model_dim);
  for (size_t row = 0; row < num_rows_; ++row) {
    CHECK_LT(static_cast<size_t>(batch[row].token), config_.vocab_size);
    kernels::DequantizeRow(model_.weights.token_embedding,
                           static_cast<size_t>(batch[row].token),
                           hidden_.data() + row * config_.model_dim);
  }
}

// hidden += Wo attend(q, k, v)
void Forward::Attention(size_t layer, std::span<const BatchRow> batch) {
  const LayerWeights& weights = model_.weights.layers[layer];
  Normalize(weights.attn_norm);
  ProjectQkv(layer);
  RotateAndStore(layer, batch);
  Attend(layer, batch);
  const ActivationView x =
      activations_.Set(attended_.data(), num_rows_, config_.q_dim(),
                       kernels::ReadsQuantized(weights.o.type), pool_);
  projected_.resize(num_rows_ * config_.model_dim);
  Multiply(x, weights.o, projected_.data());
  kernels::Add(projected_.data(), num_rows_ * config_.model_dim,
               hidden_.data());
}

void Forward::ProjectQkv(size_t layer) {
  const LayerWeights& weights = model_.weights.layers[layer];
  const bool quantize = kernels::ReadsQuantized(weights.q.type) ||
                        kernels::ReadsQuantized(weights.k.type) ||
                        kernels::ReadsQuantized(weights.v.type);
  const ActivationView x = activations_.Set(normed_.data(), num_rows_,
                                            config_.model_dim, quantize, pool_);
  q_.resize(num_rows_ * config_.q_dim());
  k_.resize(num_rows_ * config_.kv_dim());
  v_.resize(num_rows_ * config_.kv_dim());
  const std::span<const uint32_t> rows = FirstRows(num_rows_);
  const Product products[] = {
      {&weights.q, &x, rows, q_.data(), config_.q_dim()},
      {&weights.k, &x, rows, k_.data(), config_.kv_dim()},
      {&weights.v, &x, rows, v_.data(), config_.kv_dim()}};
  products_.Run(products, pool_);
  if (!config_.qkv_bias) return;
  for (size_t row = 0; row < num_rows_; ++row) {
    kernels::Add(weights.q_bias, config_.q_dim(),
                 q_.data() + row * config_.q_dim());
    kernels::Add(weights.k_bias, config_.kv_dim(),
                 k_.data() + row * config_.kv_dim());
    kernels::Add(weights.v_bias, config_.kv_dim(),
                 v_.data() + row * config_.kv_dim());
  }
}

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

void Forward::RotateAndStore(size_t layer, std::span<const BatchRow> batch) {
  const LayerWeights& weights = model_.weights.layers[layer];
  pool_.ForEach(num_rows_, [&](size_t row) {
    float* q = q_.data() + row * config_.q_dim();
    float* k = k_.data() + row * config_.kv_dim();
    NormalizeHeads(config_.qk_norm, weights.q_norm, config_.rms_eps,
                   config_.num_heads, config_.head_dim, q);
    NormalizeHeads(config_.qk_norm, weights.k_norm, config_.rms_eps,
                   config_.num_kv_heads, config_.head_dim, k);
    const size_t position = batch[row].position;
    kernels::ApplyRope(rope_, config_.rope.pairing, position, config_.num_heads,
                       config_.head_dim, q);
    kernels::ApplyRope(rope_, config_.rope.pairing, position,
                       config_.num_kv_heads, config_.head_dim, k);
    batch[row].kv->Store(layer, position, k,
                         v_.data() + row * config_.kv_dim());
  });
}

void Forward::Attend(size_t layer, std::span<const BatchRow> batch) {
  const size_t heads = config_.num_heads;
  const size_t heads_per_kv = heads / config_.num_kv_heads;
  const size_t window = config_.layers[layer].sliding_window;
  const float scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  attended_.resize(num_rows_ * config_.q_dim());
  const size_t num_tasks = num_rows_ * heads;
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
      kernels::AttendHead(
          q_.data() + at, batch[row].kv->Head(layer, head / heads_per_kv),
          begin, end, scale, scores.data(), attended_.data() + at);
    }
  });
}

// hidden += routed experts + shared expert. A dense layer is one expert that
// every token takes with weight 1.
void Forward::FeedForward(size_t layer, const StepRecord& record) {
  const LayerWeights& weights = model_.weights.layers[layer];
  Normalize(weights.ffn_norm);
  Route(layer, record);
  projected_.assign(num_rows_ * config_.model_dim, 0.0f);
  RunRoutedExperts(layer);
  if (!weights.shared.gate.empty()) AddSharedExpert(layer);
  kernels::Add(projected_.data(), num_rows_ * config_.model_dim,
               hidden_.data());
}

// Which experts each row takes: routing_ and groups_.
void Forward::Route(size_t layer, const StepRecord& record) {
  const model::LayerConfig& config = config_.layers[layer];
  if (config.is_moe) {
    const WeightView& router = model_.weights.layers[layer].router;
    router_logits_.resize(num_rows_ * router.rows);
    const ActivationView x = {
        .x = normed_.data(), .num_rows = num_rows_, .cols = config_.model_dim};
    Multiply(x, router, router_logits_.data());
    routing::Route(config.router, router_logits_.data(), nullptr, num_rows_,
                   &routing_);
    if (record.stats != nullptr) {
      record.stats->Record(static_cast<uint32_t>(layer), routing_.ids);
    }
  } else {
    routing_.num_tokens = num_rows_;
    routing_.top_k = 1;
    routing_.ids.assign(num_rows_, 0);
    routing_.weights.assign(num_rows_, 1.0f);
  }
  if (record.routings != nullptr) {
    record.routings->resize(config_.layers.size());
    (*record.routings)[layer] = config.is_moe ? routing_ : routing::Routing{};
  }
  routing::GroupByExpert(routing_, config.router.num_experts, &groups_);
}

// Expert-major: each distinct expert is walked once for all its tokens. Each
// token's sum is taken in slot order, so it does not depend on that.
void Forward::RunRoutedExperts(size_t layer) {
  const std::vector<ExpertWeights>& experts =
      model_.weights.layers[layer].experts;
  const size_t ff_dim = config_.layers[layer].expert_ff_dim;
  const size_t model_dim = config_.model_dim;
  const size_t num_pairs = groups_.tokens.size();
  const size_t num_groups = groups_.expert_ids.size();
  gate_.resize(num_pairs * ff_dim);
  up_.resize(num_pairs * ff_dim);
  expert_out_.resize(num_pairs * model_dim);

  bool quantize = false;
  bool quantize_inner = false;
  for (const uint32_t id : groups_.expert_ids) {
    quantize |= kernels::ReadsQuantized(experts[id].gate.type) ||
                kernels::ReadsQuantized(experts[id].up.type);
    quantize_inner |= kernels::ReadsQuantized(experts[id].down.type);
  }
  const ActivationView x =
      activations_.Set(normed_.data(), num_rows_, model_dim, quantize, pool_);
  product_list_.clear();
  for (size_t g = 0; g < num_groups; ++g) {
    const size_t begin = groups_.offsets[g];
    const std::span<const uint32_t> tokens(groups_.tokens.data() + begin,
                                           groups_.offsets[g + 1] - begin);
    const ExpertWeights& expert = experts[groups_.expert_ids[g]];
    product_list_.push_back(
        {&expert.gate, &x, tokens, gate_.data() + begin * ff_dim, ff_dim});
    product_list_.push_back(
        {&expert.up, &x, tokens, up_.data() + begin * ff_dim, ff_dim});
  }
  products_.Run(product_list_, pool_);
  if (config_.layers[layer].is_moe) CountProducts();

  pool_.ForRange(num_pairs * ff_dim, 4096, [&](size_t begin, size_t end) {
    kernels::SiluMul(gate_.data() + begin, up_.data() + begin, end - begin,
                     gate_.data() + begin);
  });

  const ActivationView inner = inner_activations_.Set(
      gate_.data(), num_pairs, ff_dim, quantize_inner, pool_);
  const std::span<const uint32_t> pairs = FirstRows(num_pairs);
  product_list_.clear();
  for (size_t g = 0; g < num_groups; ++g) {
    const size_t begin = groups_.offsets[g];
    product_list_.push_back(
        {&experts[groups_.expert_ids[g]].down, &inner,
         pairs.subspan(begin, groups_.offsets[g + 1] - begin),
         expert_out_.data() + begin * model_dim, model_dim});
  }
  products_.Run(product_list_, pool_);
  if (config_.layers[layer].is_moe) CountProducts();

  const size_t top_k = routing_.top_k;
  pair_of_slot_.resize(num_pairs);
  for (uint32_t pair = 0; pair < num_pairs; ++pair) {
    pair_of_slot_[groups_.tokens[pair] * top_k + groups_.slots[pair]] = pair;
  }
  pool_.ForEach(num_rows_, [&](size_t row) {
    for (size_t slot = row * top_k; slot < (row + 1) * top_k; ++slot) {
      kernels::AddScaled(expert_out_.data() + pair_of_slot_[slot] * model_dim,
                         routing_.weights[slot], model_dim,
                         projected_.data() + row * model_dim);
    }
  });
}

// The experts' products that have just run, for the record.
void Forward::CountProducts() {
  for (const Product& product : product_list_) {
    routed_parameters_ += uint64_t{product.weights->rows} *
                          product.weights->cols * product.tokens.size();
  }
}

// projected += sigmoid(x . w) * shared(x), or shared(x) where there is no gate.
void Forward::AddSharedExpert(size_t layer) {
  const LayerWeights& weights = model_.weights.layers[layer];
  const ExpertWeights& shared = weights.shared;
  const size_t ff_dim = config_.layers[layer].shared_ff_dim;
  const size_t model_dim = config_.model_dim;
  const std::span<const uint32_t> rows = FirstRows(num_rows_);
  gate_.resize(num_rows_ * ff_dim);
  up_.resize(num_rows_ * ff_dim);
  expert_out_.resize(num_rows_ * model_dim);
  const ActivationView x =
      activations_.Set(normed_.data(), num_rows_, model_dim,
                       kernels::ReadsQuantized(shared.gate.type) ||
                           kernels::ReadsQuantized(shared.up.type),
                       pool_);
  const Product products[] = {{&shared.gate, &x, rows, gate_.data(), ff_dim},
                              {&shared.up, &x, rows, up_.data(), ff_dim}};
  products_.Run(products, pool_);
  pool_.ForRange(num_rows_ * ff_dim, 4096, [&](size_t begin, size_t end) {
    kernels::SiluMul(gate_.data() + begin, up_.data() + begin, end - begin,
                     gate_.data() + begin);
  });
  const ActivationView inner =
      inner_activations_.Set(gate_.data(), num_rows_, ff_dim,
                             kernels::ReadsQuantized(shared.down.type), pool_);
  Multiply(inner, shared.down, expert_out_.data());

  std::vector<float> scale(num_rows_, 1.0f);
  if (config_.layers[layer].shared_gate) {
    const ActivationView float_x = {
        .x = normed_.data(), .num_rows = num_rows_, .cols = model_dim};
    Multiply(float_x, weights.shared_router, scale.data());
    kernels::Sigmoid(scale.data(), num_rows_);
  }
  for (size_t row = 0; row < num_rows_; ++row) {
    kernels::AddScaled(expert_out_.data() + row * model_dim, scale[row],
                       model_dim, projected_.data() + row * model_dim);
  }
}

void Forward::Head(std::span<const BatchRow> batch, float* logits) {
  const size_t model_dim = config_.model_dim;
  size_t wanted = 0;
  for (size_t row = 0; row < num_rows_; ++row) {
    if (!batch[row].wants_logits) continue;
    kernels::RmsNorm(hidden_.data() + row * model_dim,
                     model_.weights.output_norm, config_.rms_eps, model_dim,
                     normed_.data() + wanted * model_dim);
    ++wanted;
  }
  if (wanted == 0) return;
  CHECK(logits != nullptr);
  const WeightView& output = model_.weights.output;
  const ActivationView x =
      activations_.Set(normed_.data(), wanted, model_dim,
                       kernels::ReadsQuantized(output.type), pool_);
  Multiply(x, output, logits);
}

std::span<const uint32_t> Forward::FirstRows(size_t count) {
  while (row_numbers_.size() < count) {
    row_numbers_.push_back(static_cast<uint32_t>(row_numbers_.size()));
  }
  return std::span<const uint32_t>(row_numbers_).first(count);
}

void Forward::Normalize(const float* scale) {
  const size_t dim = config_.model_dim;
  normed_.resize(num_rows_ * dim);
  pool_.ForEach(num_rows_, [&](size_t row) {
    kernels::RmsNorm(hidden_.data() + row * dim, scale, config_.rms_eps, dim,
                     normed_.data() + row * dim);
  });
}

void Forward::Multiply(const ActivationView& x, const WeightView& w,
                       float* out) {
  const Product product = {&w, &x, FirstRows(x.num_rows), out, w.rows};
  products_.Run({&product, 1}, pool_);
}

}  // namespace muster::runtime

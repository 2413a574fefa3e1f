#include "runtime/forward.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/dequantize.h"
#include "kernels/elementwise.h"
#include "kernels/rms_norm.h"
#include "routing/router.h"
#include "telemetry/trace.h"

namespace muster::runtime {

using kernels::ActivationView;
using kernels::Product;
using model::ExpertWeights;
using model::LayerWeights;
using telemetry::TraceArg;
using telemetry::TraceZone;

namespace {

TraceArg LayerArg(size_t layer) {
  return {"layer", static_cast<int64_t>(layer)};
}

}  // namespace

void Forward::Run(std::span<const BatchRow> batch, float* logits,
                  const StepRecord& record) {
  num_rows_ = batch.size();
  routed_parameters_ = 0;
  clock_.Start(record.phases);
  Embed(batch);
  for (size_t layer = 0; layer < config_.layers.size(); ++layer) {
    Attention(layer, batch);
    FeedForward(layer, record);
  }
  clock_.Enter(Phase::kHead);
  Head(batch, logits);
  clock_.Stop();
  if (record.routed_parameters != nullptr) {
    *record.routed_parameters += routed_parameters_;
  }
}

Forward::Forward(const LoadedModel& model, ThreadPool& pool,
                 size_t context_length)
    : model_(model),
      config_(model.config),
      pool_(pool),
      attention_(model.config, pool, context_length) {}

void Forward::Embed(std::span<const BatchRow> batch) {
  const TraceZone zone("embed");
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
  const TraceZone zone("attention", LayerArg(layer));
  const LayerWeights& weights = model_.weights.layers[layer];
  Normalize(weights.attn_norm);
  clock_.Enter(Phase::kQkv);
  ProjectQkv(layer);
  clock_.Enter(Phase::kAttention);
  attended_.resize(num_rows_ * config_.q_dim());
  attention_.Run(layer, batch,
                 {.q_norm = weights.q_norm,
                  .k_norm = weights.k_norm,
                  .q = q_.data(),
                  .k = k_.data(),
                  .v = v_.data(),
                  .out = attended_.data()});
  clock_.Enter(Phase::kOutput);
  const ActivationView x =
      activations_.Set(attended_.data(), num_rows_, config_.q_dim(),
                       kernels::ReadsQuantized(weights.o.type), pool_);
  projected_.resize(num_rows_ * config_.model_dim);
  Multiply(x, weights.o, projected_.data());
  clock_.Enter(Phase::kOther);
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

// hidden += routed experts + shared expert. A dense layer is one expert that
// every token takes with weight 1. Three parallel regions for one token: the
// router; gate and up of all experts; their down products and the sum.
void Forward::FeedForward(size_t layer, const StepRecord& record) {
  const TraceZone zone("feed-forward", LayerArg(layer));
  const LayerWeights& weights = model_.weights.layers[layer];
  Normalize(weights.ffn_norm);
  clock_.Enter(Phase::kRouter);
  Route(layer, record);
  clock_.Enter(Phase::kGateUp);
  GateAndUp(layer);
  clock_.Enter(Phase::kDown);
  projected_.resize(num_rows_ * config_.model_dim);
  if (num_rows_ == 1) {
    SumExpertsOfOneRow(layer);
  } else {
    SumExpertsOfRows(layer);
  }
  clock_.Enter(Phase::kOther);
  kernels::Add(projected_.data(), num_rows_ * config_.model_dim,
               hidden_.data());
}

// Which experts each row takes: routing_ and groups_; how much of the shared
// one: shared_scale_.
void Forward::Route(size_t layer, const StepRecord& record) {
  const model::LayerConfig& config = config_.layers[layer];
  const LayerWeights& weights = model_.weights.layers[layer];
  const ActivationView x = {
      .x = normed_.data(), .num_rows = num_rows_, .cols = config_.model_dim};
  const std::span<const uint32_t> rows = FirstRows(num_rows_);
  product_list_.clear();
  if (config.is_moe) {
    router_logits_.resize(num_rows_ * weights.router.rows);
    product_list_.push_back({&weights.router, &x, rows, router_logits_.data(),
                             weights.router.rows});
  }
  shared_scale_.assign(num_rows_, 1.0f);
  if (config.shared_gate) {
    product_list_.push_back(
        {&weights.shared_router, &x, rows, shared_scale_.data(), 1});
  }
  products_.Run(product_list_, pool_);
  if (config.shared_gate) {
    kernels::Sigmoid(shared_scale_.data(), num_rows_);
  }
  if (config.is_moe) {
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
  pair_of_slot_.resize(groups_.tokens.size());
  for (uint32_t pair = 0; pair < groups_.tokens.size(); ++pair) {
    pair_of_slot_[groups_.tokens[pair] * routing_.top_k + groups_.slots[pair]] =
        pair;
  }
}

Forward::Inner Forward::MakeInner(size_t num_rows, size_t cols, bool quantized,
                                  bool floats,
                                  kernels::Activations& activations,
                                  std::vector<float>& buffer) {
  Inner inner;
  inner.view = {.num_rows = num_rows, .cols = cols};
  if (quantized) {
    inner.view = activations.Reserve(num_rows, cols);
    inner.groups = activations.groups();
  }
  if (floats) {
    buffer.resize(num_rows * cols);
    inner.view.x = inner.x = buffer.data();
  }
  return inner;
}

kernels::GatedProduct Forward::Gated(const ExpertWeights& expert,
                                     const ActivationView& x,
                                     std::span<const uint32_t> tokens,
                                     const Inner& inner, size_t first_row) {
  const bool quantized = kernels::ReadsQuantized(expert.down.type);
  return {.gate = &expert.gate,
          .up = &expert.up,
          .x = &x,
          .tokens = tokens,
          .inner = {.x = quantized ? nullptr : inner.x,
                    .groups = quantized ? inner.groups : nullptr,
                    .cols = inner.view.cols,
                    .num_groups = inner.view.num_groups},
          .first_row = first_row};
}

// Expert-major: each distinct expert is walked once for all its tokens, and the
// shared one with them. Leaves silu(gate) * up in expert_inner_ (a row a pair)
// and shared_inner_.
void Forward::GateAndUp(size_t layer) {
  const LayerWeights& weights = model_.weights.layers[layer];
  const model::LayerConfig& config = config_.layers[layer];
  const std::vector<ExpertWeights>& experts = weights.experts;
  const size_t num_groups = groups_.expert_ids.size();
  const bool has_shared = !weights.shared.gate.empty();

  bool quantize = has_shared && ReadsQuantizedIn(weights.shared);
  bool down_quantized = false, down_floats = false;
  for (const uint32_t id : groups_.expert_ids) {
    quantize |= ReadsQuantizedIn(experts[id]);
    const bool quantized = kernels::ReadsQuantized(experts[id].down.type);
    down_quantized |= quantized;
    down_floats |= !quantized;
  }
  const ActivationView x = activations_.Set(normed_.data(), num_rows_,
                                            config_.model_dim, quantize, pool_);
  expert_inner_ =
      MakeInner(groups_.tokens.size(), config.expert_ff_dim, down_quantized,
                down_floats, inner_activations_, inner_floats_);
  gated_list_.clear();
  for (size_t g = 0; g < num_groups; ++g) {
    const ExpertWeights& expert = experts[groups_.expert_ids[g]];
    const size_t begin = groups_.offsets[g];
    const std::span<const uint32_t> tokens(groups_.tokens.data() + begin,
                                           groups_.offsets[g + 1] - begin);
    gated_list_.push_back(Gated(expert, x, tokens, expert_inner_, begin));
    if (config.is_moe) CountParameters(expert, tokens.size());
  }
  if (has_shared) {
    const bool quantized = kernels::ReadsQuantized(weights.shared.down.type);
    shared_inner_ = MakeInner(num_rows_, config.shared_ff_dim, quantized,
                              !quantized, shared_activations_, shared_floats_);
    gated_list_.push_back(
        Gated(weights.shared, x, FirstRows(num_rows_), shared_inner_, 0));
  }
  products_.RunGated(gated_list_, pool_);
}

bool Forward::ReadsQuantizedIn(const ExpertWeights& expert) {
  return kernels::ReadsQuantized(expert.gate.type) ||
         kernels::ReadsQuantized(expert.up.type);
}

void Forward::CountParameters(const ExpertWeights& expert, size_t num_tokens) {
  for (const WeightView* w : {&expert.gate, &expert.up, &expert.down}) {
    routed_parameters_ += uint64_t{w->rows} * w->cols * num_tokens;
  }
}

// projected = sum over slots of weight * expert + scale * shared.
void Forward::SumExpertsOfOneRow(size_t layer) {
  const LayerWeights& weights = model_.weights.layers[layer];
  term_list_.clear();
  for (size_t slot = 0; slot < routing_.top_k; ++slot) {
    term_list_.push_back({.weights = &weights.experts[routing_.ids[slot]].down,
                          .x = &expert_inner_.view,
                          .row = pair_of_slot_[slot],
                          .weight = routing_.weights[slot]});
  }
  if (!weights.shared.gate.empty()) {
    term_list_.push_back({.weights = &weights.shared.down,
                          .x = &shared_inner_.view,
                          .weight = shared_scale_[0]});
  }
  products_.RunWeightedSum(term_list_, projected_.data(), pool_);
}

// The same sums, in the same order for each row, after expert-major products.
void Forward::SumExpertsOfRows(size_t layer) {
  const LayerWeights& weights = model_.weights.layers[layer];
  const size_t model_dim = config_.model_dim;
  const size_t num_pairs = groups_.tokens.size();
  const bool has_shared = !weights.shared.gate.empty();
  expert_out_.resize(num_pairs * model_dim);
  const std::span<const uint32_t> pairs =
      FirstRows(std::max(num_pairs, num_rows_));
  product_list_.clear();
  for (size_t g = 0; g < groups_.expert_ids.size(); ++g) {
    const size_t begin = groups_.offsets[g];
    product_list_.push_back(
        {&weights.experts[groups_.expert_ids[g]].down, &expert_inner_.view,
         pairs.subspan(begin, groups_.offsets[g + 1] - begin),
         expert_out_.data() + begin * model_dim, model_dim});
  }
  if (has_shared) {
    shared_out_.resize(num_rows_ * model_dim);
    product_list_.push_back({&weights.shared.down, &shared_inner_.view,
                             pairs.first(num_rows_), shared_out_.data(),
                             model_dim});
  }
  products_.Run(product_list_, pool_);
  pool_.ForEach(num_rows_, [&](size_t row) {
    float* sum = projected_.data() + row * model_dim;
    std::fill_n(sum, model_dim, 0.0f);
    const size_t top_k = routing_.top_k;
    for (size_t slot = row * top_k; slot < (row + 1) * top_k; ++slot) {
      kernels::AddScaled(expert_out_.data() + pair_of_slot_[slot] * model_dim,
                         routing_.weights[slot], model_dim, sum);
    }
    if (has_shared) {
      kernels::AddScaled(shared_out_.data() + row * model_dim,
                         shared_scale_[row], model_dim, sum);
    }
  });
}

void Forward::Head(std::span<const BatchRow> batch, float* logits) {
  const TraceZone zone("head");
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

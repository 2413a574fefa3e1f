#include "runtime/forward.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/elementwise.h"
#include "kernels/rms_norm.h"
#include "telemetry/trace.h"

namespace muster::runtime {

using kernels::ActivationForms;
using kernels::ActivationView;
using kernels::Product;
using model::LayerWeights;
using telemetry::TraceArg;
using telemetry::TraceZone;

namespace {

TraceArg LayerArg(size_t layer) {
  return {"layer", static_cast<int64_t>(layer)};
}

}  // namespace

Status Forward::Run(std::span<const BatchRow> batch, float* logits,
                    const StepRecord& record) {
  num_rows_ = batch.size();
  clock_.Start(record.phases);
  experts_.BeginStep(num_rows_);
  RETURN_IF_ERROR(Embed(batch));
  for (size_t layer = 0; layer < config_.layers.size(); ++layer) {
    Attention(layer, batch);
    RETURN_IF_ERROR(FeedForward(layer, record));
  }
  clock_.Enter(Phase::kHead);
  Head(batch, logits);
  experts_.EndStep();
  clock_.Stop();
  return {};
}

Forward::Forward(const LoadedModel& model, ThreadPool& pool,
                 size_t context_length, const RoutingChoice& choice,
                 std::optional<uint32_t> layers_ahead)
    : model_(model),
      config_(model.config),
      pool_(pool),
      attention_(model.config, pool, context_length),
      experts_(model, pool, choice, layers_ahead) {}

Status Forward::Embed(std::span<const BatchRow> batch) {
  const TraceZone zone("embed");
  hidden_.resize(num_rows_ * config_.model_dim);
  row_status_.assign(num_rows_, {});
  pool_.ForEach(num_rows_, [&](size_t row) {
    const auto token = static_cast<size_t>(batch[row].token);
    CHECK_LT(token, config_.vocab_size);
    row_status_[row] =
        model_.embedding.Row(token, hidden_.data() + row * config_.model_dim);
  });
  for (const Status& status : row_status_) RETURN_IF_ERROR(status);
  return {};
}

// hidden += Wo attend(q, k, v)
void Forward::Attention(size_t layer, std::span<const BatchRow> batch) {
  const TraceZone zone("attention", LayerArg(layer));
  const LayerWeights& weights = model_.weights.layers[layer];
  Normalize(weights.attn_norm);
  clock_.Enter(Phase::kQkv);
  ProjectQkv(layer);
  experts_.Pump();
  clock_.Enter(Phase::kAttention);
  attended_.resize(num_rows_ * config_.q_dim());
  attention_.Run(layer, batch,
                 {.q_norm = weights.q_norm,
                  .k_norm = weights.k_norm,
                  .q = q_.data(),
                  .k = k_.data(),
                  .v = v_.data(),
                  .out = attended_.data()});
  experts_.Pump();
  clock_.Enter(Phase::kOutput);
  const ActivationView x =
      activations_.Set(attended_.data(), num_rows_, config_.q_dim(),
                       kernels::FormRead(weights.o.type), pool_);
  projected_.resize(num_rows_ * config_.model_dim);
  Multiply(x, weights.o, projected_.data());
  clock_.Enter(Phase::kOther);
  kernels::Add(projected_.data(), num_rows_ * config_.model_dim,
               hidden_.data());
}

void Forward::ProjectQkv(size_t layer) {
  const LayerWeights& weights = model_.weights.layers[layer];
  ActivationForms forms = kernels::FormRead(weights.q.type);
  forms |= kernels::FormRead(weights.k.type);
  forms |= kernels::FormRead(weights.v.type);
  const ActivationView x = activations_.Set(normed_.data(), num_rows_,
                                            config_.model_dim, forms, pool_);
  q_.resize(num_rows_ * config_.q_dim());
  k_.resize(num_rows_ * config_.kv_dim());
  v_.resize(num_rows_ * config_.kv_dim());
  const std::span<const uint32_t> rows = first_rows_(num_rows_);
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

// hidden += experts
Status Forward::FeedForward(size_t layer, const StepRecord& record) {
  const TraceZone zone("feed-forward", LayerArg(layer));
  Normalize(model_.weights.layers[layer].ffn_norm);
  projected_.resize(num_rows_ * config_.model_dim);
  RETURN_IF_ERROR(experts_.Run(layer, hidden_.data(), normed_.data(), num_rows_,
                               record, clock_, projected_.data()));
  clock_.Enter(Phase::kOther);
  kernels::Add(projected_.data(), num_rows_ * config_.model_dim,
               hidden_.data());
  return {};
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
  const ActivationView x = activations_.Set(
      normed_.data(), wanted, model_dim, kernels::FormRead(output.type), pool_);
  Multiply(x, output, logits);
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
  const Product product = {&w, &x, first_rows_(x.num_rows), out, w.rows};
  products_.Run({&product, 1}, pool_);
}

}  // namespace muster::runtime

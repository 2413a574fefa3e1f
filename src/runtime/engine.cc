#include "runtime/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "telemetry/trace.h"

namespace muster::runtime {

telemetry::RoutingStats MakeRoutingStats(const model::ModelConfig& config) {
  std::vector<uint32_t> num_experts;
  std::vector<uint32_t> top_k;
  for (const model::LayerConfig& layer : config.layers) {
    num_experts.push_back(layer.is_moe ? layer.router.num_experts : 0);
    top_k.push_back(layer.is_moe ? layer.router.top_k : 0);
  }
  return telemetry::RoutingStats(std::move(num_experts), std::move(top_k));
}

size_t NumThreads(const EngineOptions& options) {
  return options.num_threads == 0 ? DefaultNumThreads() : options.num_threads;
}

Status CheckInVocabulary(std::span<const int32_t> tokens, size_t vocab_size) {
  for (const int32_t token : tokens) {
    if (token < 0 || static_cast<size_t>(token) >= vocab_size) {
      return InvalidArgument(fmt::format(
          "token {} is outside the vocabulary of {}", token, vocab_size));
    }
  }
  return {};
}

Result<std::unique_ptr<Engine>> Engine::Load(const formats::ModelFiles& files,
                                             const EngineOptions& options,
                                             LoadProgress* progress) {
  std::shared_ptr<const LoadedModel> model;
  {
    ThreadPool loading_pool(NumThreads(options));
    ASSIGN_OR_RETURN(model, LoadModel(files, options, loading_pool, progress));
  }
  return Create(std::move(model), options);
}

Result<std::unique_ptr<Engine>> Engine::Create(
    std::shared_ptr<const LoadedModel> model, const EngineOptions& options) {
  RETURN_IF_ERROR(KvPages::CheckType(model->config, options.kv_type));
  return std::unique_ptr<Engine>(
      new Engine(std::move(model), NumThreads(options), options));
}

Engine::Engine(std::shared_ptr<const LoadedModel> model, size_t num_threads,
               const EngineOptions& options)
    : pool_(num_threads),
      model_(std::move(model)),
      context_length_(
          std::min(options.context_length, model_->config.context_length)),
      forward_(*model_, pool_, context_length_, options.routing,
               options.tiers.layers_ahead),
      kv_pages_(model_->config, options.kv_type,
                KvPages::PagesFor(context_length_)),
      chunk_tokens_(std::max<size_t>(1, options.chunk_tokens)),
      counters_{.routing = MakeRoutingStats(model_->config)} {
  CHECK(kv_.Reserve(context_length_));
}

Status Engine::CheckTokens(std::span<const int32_t> tokens) const {
  if (tokens.empty()) return InvalidArgument("there is no token to run");
  RETURN_IF_ERROR(CheckInVocabulary(tokens, model_->config.vocab_size));
  if (tokens.size() > context_length() - position_) {
    return InvalidArgument(fmt::format(
        "{} tokens behind {} are more than the context of {}: take a larger "
        "--ctx (the model was made for {})",
        tokens.size(), position_, context_length(),
        model_->config.context_length));
  }
  return {};
}

Result<std::span<float>> Engine::Append(std::span<const int32_t> tokens) {
  RETURN_IF_ERROR(CheckTokens(tokens));
  logits_.resize(model_->config.vocab_size);
  for (size_t done = 0; done < tokens.size(); done += chunk_tokens_) {
    const size_t count = std::min(chunk_tokens_, tokens.size() - done);
    const bool is_last = done + count == tokens.size();
    RETURN_IF_ERROR(
        RunChunk(tokens.subspan(done, count), false, is_last, logits_.data()));
  }
  return std::span<float>(logits_);
}

Result<std::span<float>> Engine::AppendForAllLogits(
    std::span<const int32_t> tokens) {
  RETURN_IF_ERROR(CheckTokens(tokens));
  const size_t vocab_size = model_->config.vocab_size;
  logits_.resize(tokens.size() * vocab_size);
  for (size_t done = 0; done < tokens.size(); done += chunk_tokens_) {
    const size_t count = std::min(chunk_tokens_, tokens.size() - done);
    RETURN_IF_ERROR(RunChunk(tokens.subspan(done, count), true, true,
                             logits_.data() + done * vocab_size));
  }
  return std::span<float>(logits_);
}

Status Engine::RunChunk(std::span<const int32_t> tokens, bool all_logits,
                        bool last_logits, float* logits) {
  const telemetry::TraceZone zone(
      "step", {"tokens", static_cast<int64_t>(tokens.size())},
      {"position", static_cast<int64_t>(position_)});
  pool_.SetObserver(telemetry::Trace::IsOn() ? &pool_trace_ : nullptr);
  const ThreadPool::CallerPin pin(pool_);
  batch_.clear();
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool is_last = i + 1 == tokens.size();
    batch_.push_back({.token = tokens[i],
                      .position = position_ + i,
                      .kv = &kv_,
                      .wants_logits = all_logits || (is_last && last_logits)});
  }
  RETURN_IF_ERROR(
      forward_.Run(batch_, logits,
                   {.stats = &counters_.routing,
                    .routings = routings_,
                    .routed_parameters = &counters_.routed_parameters,
                    .phases = phase_times_}));
  position_ += tokens.size();
  counters_.num_tokens += tokens.size();
  return {};
}

void Engine::Rewind(size_t position) {
  CHECK_LE(position, position_);
  position_ = position;
}

void Engine::ResetCounters() {
  counters_ = {.routing = MakeRoutingStats(model_->config)};
}

}  // namespace muster::runtime

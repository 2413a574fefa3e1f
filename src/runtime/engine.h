// One model, one sequence: the engine that `muster run` and `muster eval`
// drive.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "formats/model_files.h"
#include "runtime/engine_options.h"
#include "runtime/forward.h"
#include "runtime/kv_cache.h"
#include "runtime/loaded_model.h"
#include "runtime/pool_trace.h"
#include "telemetry/routing_stats.h"

namespace muster::runtime {

// What the tokens since the last ResetCounters cost.
struct EngineCounters {
  uint64_t num_tokens = 0;         // that went through the layers
  uint64_t routed_parameters = 0;  // of experts that ran, summed over tokens
  telemetry::RoutingStats routing;
};

// One thread at a time; uses its own pool inside, which may pin the calling
// thread to a core until the call ends.
class Engine {
 public:
  // Loads the weights and takes the KV cache's memory. Blocks; see LoadModel
  // for the errors. `progress` may be null.
  static Result<std::unique_ptr<Engine>> Load(const formats::ModelFiles& files,
                                              const EngineOptions& options,
                                              LoadProgress* progress);

  // Another sequence on weights that are in memory already. Fails with
  // kInvalidArgument on a cache type that the model's heads do not fit.
  static Result<std::unique_ptr<Engine>> Create(
      std::shared_ptr<const LoadedModel> model, const EngineOptions& options);

  const LoadedModel& model() const { return *model_; }
  std::shared_ptr<const LoadedModel> shared_model() const { return model_; }
  size_t num_threads() const { return pool_.num_threads(); }
  size_t context_length() const { return context_length_; }
  size_t chunk_tokens() const { return chunk_tokens_; }
  size_t kv_bytes() const { return kv_pages_.size_bytes(); }

  // Tokens in the sequence so far.
  size_t position() const { return position_; }

  // Runs `tokens` behind what is there and returns the logits of the last one,
  // [vocab_size]: valid, and the caller's to change, until the next call.
  // Fails with kInvalidArgument on no token, a token outside the vocabulary or
  // more tokens than the context has room for: nothing has changed then. Fails
  // with kIoError or kCorrupt when an expert cannot be had from any tier: the
  // sequence ends before the chunk of `tokens` that failed.
  Result<std::span<float>> Append(std::span<const int32_t> tokens);

  // The same, and the logits of every token: [tokens, vocab_size].
  Result<std::span<float>> AppendForAllLogits(std::span<const int32_t> tokens);

  // Forgets positions from `position` on. REQUIRES: position <= position().
  void Rewind(size_t position);

  const EngineCounters& counters() const { return counters_; }
  void ResetCounters();

  // What experts in tiers have cost since the model was loaded; zeros when all
  // are in memory.
  telemetry::TierCounters tier_counters() const {
    return model_->tiers == nullptr ? telemetry::TierCounters{}
                                    : model_->tiers->counters();
  }

  const PrefetchGovernor& prefetch() const { return forward_.prefetch(); }

  // Where set, the routing of the last step's layers is kept there.
  void KeepRoutings(std::vector<routing::Routing>* routings) {
    routings_ = routings;
  }

  // Where set, the seconds that each kind of work takes are added there. Null:
  // no clock is read.
  void KeepPhaseTimes(PhaseTimes* times) { phase_times_ = times; }

 private:
  Engine(std::shared_ptr<const LoadedModel> model, size_t num_threads,
         const EngineOptions& options);

  Status CheckTokens(std::span<const int32_t> tokens) const;
  Status RunChunk(std::span<const int32_t> tokens, bool all_logits,
                  bool last_logits, float* logits);

  PoolTrace pool_trace_;  // what pool_ tells of itself to a trace
  ThreadPool pool_;
  // Shared: engines of other thread counts or caches read the same weights, and
  // the last one frees them.
  std::shared_ptr<const LoadedModel> model_;
  size_t context_length_;
  Forward forward_;
  KvPages kv_pages_;
  KvCache kv_{&kv_pages_};
  size_t chunk_tokens_;
  size_t position_ = 0;
  EngineCounters counters_;
  std::vector<routing::Routing>* routings_ = nullptr;
  PhaseTimes* phase_times_ = nullptr;
  std::vector<BatchRow> batch_;
  std::vector<float> logits_;
};

// What the options say or, where that is 0, all that the process may use.
size_t NumThreads(const EngineOptions& options);

// Fails with kInvalidArgument on a token that is not in the vocabulary.
Status CheckInVocabulary(std::span<const int32_t> tokens, size_t vocab_size);

// A RoutingStats of this model's shape.
telemetry::RoutingStats MakeRoutingStats(const model::ModelConfig& config);

}  // namespace muster::runtime

// Many sequences on one model: continuous batching.
//
// Each step takes one token of every sequence that generates and, within the
// step's budget of tokens, prompts' next parts: tokens of all of them that
// chose the same expert share its read and its pass. What a sequence answers
// does not depend on the others, on the cache of prefixes or on pre-emption:
// the bits are those of an Engine that runs it alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "runtime/engine_options.h"
#include "runtime/loaded_model.h"
#include "runtime/sequence.h"
#include "telemetry/routing_stats.h"

namespace muster::runtime {

struct SchedulerOptions {
  // num_threads, context_length (of a sequence), chunk_tokens (the most tokens
  // of a step), kv_type, kv_positions, logit_rows (the most tokens of a step
  // whose logits are wanted) and routing count.
  EngineOptions engine;
  size_t max_running = 32;   // sequences; at most engine.logit_rows
  size_t max_waiting = 256;  // a Submit beyond that fails
  // Prompt tokens of a step in which others generate: it bounds how long these
  // wait for their next token. At most engine.chunk_tokens.
  size_t prompt_tokens_beside_answers = 128;
  bool cache_prefixes = true;
};

// Numbers of now, and sums since the start.
struct SchedulerStats {
  size_t running = 0;
  size_t waiting = 0;
  size_t kv_pages = 0;         // in all
  size_t kv_pages_in_use = 0;  // by sequences and by cached prefixes
  size_t kv_pages_cached = 0;  // of them, by cached prefixes alone
  uint64_t steps = 0;
  uint64_t step_tokens = 0;  // that went through the layers
  uint64_t prompt_tokens = 0;
  uint64_t cached_tokens = 0;
  uint64_t generated_tokens = 0;
  uint64_t preemptions = 0;
  uint64_t failed_steps = 0;       // run again, sequence by sequence
  uint64_t routed_parameters = 0;  // of experts that ran, summed over tokens
};

using SequenceId = uint64_t;

// One thread at a time; uses its own pool inside.
class Scheduler {
 public:
  // Takes the cache's memory. Fails with kInvalidArgument on options that do
  // not fit each other or the model.
  static Result<std::unique_ptr<Scheduler>> Create(
      std::shared_ptr<const LoadedModel> model,
      const SchedulerOptions& options);
  ~Scheduler();

  // Queues a sequence. Fails with kInvalidArgument on no token, a token outside
  // the vocabulary, a prompt that leaves no room in the context or sampling
  // options out of range; with kResourceExhausted when too many wait: the
  // listener hears nothing then. `listener` must live until its OnFinish.
  Result<SequenceId> Submit(SequenceRequest request,
                            SequenceListener* listener);

  // Ends it before the next step; its listener hears of it at once. Of no
  // effect on one that has finished.
  void Cancel(SequenceId id);

  bool idle() const;  // nothing is running or waiting

  // One step of all that can run. Blocks for as long as it computes. When idle
  // nothing happens. Failures are told to the sequences that they concern.
  void Step();

  // Moves the memory for experts in tiers; sequences go on with the same bits.
  // Fails with kInvalidArgument when experts are not in tiers, and as
  // ExpertTiers::SetBudget.
  Status SetExpertBudget(uint64_t budget_bytes);

  SchedulerStats stats() const;
  const telemetry::RoutingStats& routing() const;
  const LoadedModel& model() const;
  size_t context_length() const;  // positions of a sequence
  size_t num_threads() const;

 private:
  class Impl;
  explicit Scheduler(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::runtime

// One request to continue a text, as a scheduler takes it, and what it tells of
// it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/sampler.h"
#include "runtime/token_chances.h"

namespace muster::runtime {

enum class FinishReason {
  kStop,       // a stop token, or the listener wants no more
  kLength,     // max_tokens, or the context is full
  kCancelled,  // Scheduler::Cancel
  kDeadline,   // its deadline has passed
  kFailed,     // an expert could not be had; `status` says which
};

// What a sequence cost.
struct SequenceUsage {
  size_t prompt_tokens = 0;
  size_t cached_tokens = 0;  // of them, that the prefix cache had
  size_t generated_tokens = 0;
  size_t preemptions = 0;
  double queue_seconds = 0;  // from Submit to its first step
};

struct Finish {
  FinishReason reason = FinishReason::kStop;
  Status status;  // not ok: kFailed
  SequenceUsage usage;
};

// Hears of one sequence, on the scheduler's thread, between steps; must return
// fast and not call the scheduler.
class SequenceListener {
 public:
  virtual ~SequenceListener() = default;

  // What the prompt's token at `position` had had for a chance behind those
  // before it: from 1 on, in order, before the first OnToken. Only when asked
  // for.
  virtual void OnPromptChances(size_t position, const TokenChances& chances);

  // The next token. `chances` is null unless asked for. Returns whether the
  // sequence shall go on. A stop token is not told.
  virtual bool OnToken(int32_t token, const TokenChances* chances) = 0;

  // Once, and nothing after it.
  virtual void OnFinish(const Finish& finish) = 0;
};

struct SequenceRequest {
  std::vector<int32_t> prompt;  // not empty
  size_t max_tokens = 0;        // at most so many are generated; 0: none
  SamplingOptions sampling;
  std::vector<int32_t> stop_tokens;  // end it; not told
  // With each token its chance and those of so many of the likeliest; none:
  // not computed.
  std::optional<size_t> top_chances;
  std::optional<size_t> prompt_chances;  // the same of the prompt's tokens
  int priority = 0;                      // a higher one goes first
  std::string client;                    // among whom steps are shared fairly
  std::optional<std::chrono::steady_clock::time_point> deadline;
  bool may_use_cached_prefix = true;
};

}  // namespace muster::runtime

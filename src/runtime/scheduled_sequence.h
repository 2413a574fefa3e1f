// A sequence while a scheduler has it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/kv_cache.h"
#include "runtime/sampler.h"
#include "runtime/scheduler.h"
#include "runtime/sequence.h"

namespace muster::runtime {

struct ScheduledSequence {
  ScheduledSequence(SequenceId number, SequenceRequest asked,
                    SequenceListener* hears, KvPages* pages)
      : id(number),
        request(std::move(asked)),
        listener(hears),
        tokens(request.prompt),
        sampler(request.sampling),
        kv(pages),
        submitted(std::chrono::steady_clock::now()) {
    for (const int32_t token : tokens) sampler.Accept(token);
    usage.prompt_tokens = tokens.size();
  }

  // Of a step whose rows are positions [num_computed, end): whether the logits
  // behind `position` are wanted.
  bool WantsLogits(size_t position) const {
    return position + 1 == tokens.size() || WantsPromptChances(position);
  }
  // Whether the chances of the prompt's token behind `position` are.
  bool WantsPromptChances(size_t position) const {
    return request.prompt_chances.has_value() &&
           position + 1 < request.prompt.size() &&
           position + 1 > num_told_prompt_chances;
  }

  size_t num_left() const { return tokens.size() - num_computed; }
  // All but the latest token is in the cache: the next step gives one more.
  bool is_answering() const { return num_left() == 1; }
  size_t num_generated() const { return tokens.size() - request.prompt.size(); }

  const SequenceId id;
  const SequenceRequest request;
  SequenceListener* const listener;
  std::vector<int32_t> tokens;  // the prompt and what was generated
  Sampler sampler;
  KvCache kv;
  size_t num_computed = 0;  // first tokens whose keys and values are in `kv`
  size_t num_told_prompt_chances = 0;
  SequenceUsage usage;
  const std::chrono::steady_clock::time_point submitted;
  uint64_t admission = 0;  // the number of its latest; 0: never ran
};

}  // namespace muster::runtime

// How a budget of memory is shared out before a model is loaded: what must stay
// in it, and what is left for a cache of experts.
#pragma once

#include <cstdint>
#include <string>

#include "base/machine.h"
#include "base/status.h"
#include "kernels/kv_tiles.h"
#include "model/config.h"

namespace muster::runtime {

struct MemoryDemand {
  uint64_t all_bytes = 0;      // all weights, as the kernels read them
  uint64_t pinned_bytes = 0;   // of them, those that every token multiplies
  uint64_t experts_bytes = 0;  // all routed experts, in slots
  uint64_t floor_bytes = 0;    // the fewest experts that a step can do with
  uint64_t kv_bytes = 0;
  uint64_t working_bytes = 0;  // activations of the largest step
  uint64_t staging_bytes = 0;  // where experts land that must be converted
};

struct MemoryPlan {
  MemoryDemand demand;
  uint64_t budget_bytes = 0;  // of the whole process
  uint64_t margin_bytes = 0;  // the program itself, tokenizer, rounding
  uint64_t cache_bytes = 0;   // for experts; all of them when !tiered
  bool tiered = false;        // not every expert is there from the start

  // Of the budget, what nothing needs. REQUIRES: !tiered.
  uint64_t spare_bytes() const;
};

// `ram_bytes`: what the user gave; 0: what this process may use. All in memory
// where it fits. Fails with kResourceExhausted when not even the floor fits,
// or when the user gives more than there is, with the numbers.
Result<MemoryPlan> PlanMemory(const MemoryDemand& demand, uint64_t ram_bytes,
                              const MemoryInfo& memory);

// Of a step of `chunk_tokens`, and of the logits of `logit_rows`.
uint64_t WorkingBytes(const model::ModelConfig& config, size_t chunk_tokens,
                      size_t logit_rows);

// "dense weights 310 MiB, cache of 4096 tokens 96 MiB, ..., experts 1.1 of 4.2
// GiB (27 %)".
std::string Describe(const MemoryPlan& plan);

}  // namespace muster::runtime

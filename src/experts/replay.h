// A recorded trace as the requests that a cache of experts would have got.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "experts/eviction_policy.h"
#include "experts/routing_trace.h"

namespace muster::experts {

// Experts that one layer wants together.
struct ReplayEvent {
  uint32_t layer = 0;
  size_t end = 0;  // of its experts; they begin where the last event's end
};

// Immutable once made; any number of threads may read it.
struct Replay {
  uint32_t num_layers = 0;
  size_t num_tokens = 0;              // of the trace
  size_t num_prefill_tokens = 0;      // the first ones, in one step
  size_t num_prefill_events = 0;      // the first ones
  std::vector<uint32_t> num_experts;  // [num_layers]
  std::vector<uint32_t> layer_of;     // [experts in all]
  std::vector<ReplayEvent> events;
  std::vector<uint32_t> experts;  // numbered over all layers
  std::vector<uint32_t> tokens;   // how many of the event's use each of them
  // The first event of each token behind the prefill, and the end.
  std::vector<size_t> token_events;  // [decoded tokens + 1]

  uint32_t num_experts_in_all() const {
    return static_cast<uint32_t>(layer_of.size());
  }
  size_t num_decoded_tokens() const { return num_tokens - num_prefill_tokens; }
  PolicyShape shape() const {
    return {.num_layers = num_layers,
            .num_experts = num_experts_in_all(),
            .layer_of = layer_of};
  }
};

// An event is what a token takes in a layer. The first `prefill_tokens` tokens
// are one step: an event is the union of what they take in a layer, each expert
// once. REQUIRES: prefill_tokens <= trace.num_tokens.
Replay MakeReplay(const RoutingTrace& trace, size_t prefill_tokens);

// Knows the future: the expert whose next use is furthest away goes first. For
// a cache that gets every event of `replay`, in order, from the beginning;
// `replay` must outlive it. With experts of one size and events of one expert
// no policy has fewer misses (Belady, 1966).
std::unique_ptr<EvictionPolicy> MakeBelady(const Replay& replay);

}  // namespace muster::experts

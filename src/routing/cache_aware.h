// Routing that looks at which experts are in memory: opt-in, and not exact. An
// expert of a token that would have to be read may give way to one that is in
// memory and nearly as good. `muster eval --cache-aware` prints what that costs
// in agreement with exact routing, and what it saves.
//
// "Nearly as good" is a quotient of scores: the one in memory has at least
// (1 - margin) times the score of the one that gives way. Scores become
// weights, so that this bounds by how much of itself a slot's weight falls
// before weights are normalised, whatever the number of experts and however
// sharp the router is; a fixed difference would mean much to a flat router and
// nothing to a sharp one. For softmax it is a bonus of -ln(1 - margin) on the
// logits of experts in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "routing/router.h"

namespace muster::routing {

struct CacheAware {
  float margin = 0;       // 0 to 1; 0: only equals are exchanged
  uint32_t max_rank = 0;  // experts behind it (1: the best) never stand in; 0:
                          // 2 * top_k
};

// Routes as Route does without a bias, then exchanges: a token's experts that
// are not in memory, the best first, each give way to the best expert in memory
// that the token has not taken yet, where the margin and the rank allow it. No
// other order of exchanges within these bounds spares more reads. A token's
// first expert never gives way. Equal scores rank by the lowest id.
// Ids stay in order of falling score; weights are the exact scores of the
// experts that were chosen, renormalised and scaled as `config` says: where
// nothing gave way, they have the bits that Route gives.
// Returns how many choices gave way.
//   logits:    [num_tokens, num_experts]
//   in_memory: [num_experts], 0: not
// REQUIRES: 1 <= top_k <= num_experts.
size_t RouteCacheAware(const RouterConfig& config, const CacheAware& aware,
                       const float* logits, std::span<const uint8_t> in_memory,
                       size_t num_tokens, Routing* out);

}  // namespace muster::routing

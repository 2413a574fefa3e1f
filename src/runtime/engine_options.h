// How to load and run a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/kv_tiles.h"
#include "routing/cache_aware.h"

namespace muster::runtime {

// What to do about experts that do not fit in memory.
struct TierOptions {
  // Memory that the process may take; 0: what it may use.
  uint64_t ram_bytes = 0;
  // For experts alone, whatever the plan: they are tiered then even if all fit.
  std::optional<uint64_t> cache_bytes;
  std::string policy = "lfru";  // see experts/eviction_policy.h
  // See experts/expert_pool_rules.h; experts as experts/expert_list.h reads
  // them.
  uint32_t load_after = 1;
  double unload_idle_seconds = 0;  // 0: never
  std::string pin_experts;
  std::string never_keep;
  // Where all experts fit and are at least so many bytes: the first step does
  // not wait for them. Those that it calls are read then, and the others while
  // steps go on. None: all are loaded first.
  std::optional<uint64_t> load_behind_bytes;
  // Single tokens' experts are guessed and read so many layers ahead, at most
  // experts::ExpertTiers::kMostLayersAhead; 0: never. None: as measurements
  // say while it runs (PrefetchGovernor).
  std::optional<uint32_t> layers_ahead;
  size_t reads_in_flight = 0;  // experts being read at a time; 0: as it pays
  std::optional<bool> direct_reads;  // past the page cache; none: as probed
  bool io_uring = true;              // else a pool of reading threads
};

// What steps of few tokens may do about experts that are not in memory. Where
// anything is set, results depend on what is there; nothing: they are exact.
// Without tiers it makes no difference.
struct RoutingChoice {
  // Experts in memory are preferred.
  std::optional<routing::CacheAware> cache_aware;
  // An expert with less than this share of its token's weights is computed from
  // its low-bit copy (routing/tail.h); the model must be a pack with copies.
  std::optional<float> tail_weight;
};

struct EngineOptions {
  size_t num_threads = 0;        // 0: all cores that the process may use
  size_t context_length = 4096;  // positions; at most the model's own
  size_t chunk_tokens = 512;     // prompt tokens a step
  kernels::KvType kv_type = kernels::KvType::kF16;
  // Positions of all sequences of a scheduler; at least one context is taken.
  size_t kv_positions = 0;
  // Tokens of which AppendForAllLogits may be asked at a time: their logits are
  // part of the plan of memory.
  size_t logit_rows = 1;
  TierOptions tiers;
  RoutingChoice routing;
};

}  // namespace muster::runtime

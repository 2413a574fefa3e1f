// Which sizes of cache `muster simulate` tries.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "experts/replay.h"

namespace muster::cli {

struct CacheSize {
  uint64_t capacity = 0;   // in the unit of CacheSizes::room_per_expert
  double num_experts = 0;  // that fit, by the average
  double share = 0;        // of all experts
};

struct CacheSizes {
  std::vector<uint64_t> room_per_expert;  // [num_layers]: bytes, or 1 each
  std::vector<CacheSize> sizes;           // ascending, none twice
};

// As the flags have them; at most one is not empty.
struct SizeFlags {
  std::vector<std::string> ram;      // "2G": bytes for experts
  std::vector<std::string> experts;  // "512": experts; "25%": of all
};

// None given: 10 % to 90 %, those that are large enough. Fails with
// kInvalidArgument on a word that is no size, a cache too small for one token
// in one layer, and on --ram without `expert_bytes`.
//   expert_bytes: [num_layers]; empty: not known
Result<CacheSizes> ChooseSizes(const SizeFlags& flags,
                               const experts::Replay& replay,
                               std::span<const uint64_t> expert_bytes);

}  // namespace muster::cli

// Fills the hot tier before the first token with the experts that will be
// wanted most, if this run is like one before (use_counts.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "experts/expert_tiers.h"

namespace muster::experts {

// A prewarmed expert counts for the eviction policy as if a prompt of so many
// tokens had just been run with the routing that the uses come from.
inline constexpr double kPrewarmTokens = 128;

// Absent experts that were used, most used first, of equals the one of the
// lower number: as many as have room without an eviction.
//   uses: [num_experts]
std::vector<uint32_t> ExpertsToPrewarm(const ExpertTable& table,
                                       const ExpertCache& cache,
                                       std::span<const uint64_t> uses);

struct PrewarmProgress {
  std::atomic<uint64_t> done_bytes{0};
  std::atomic<uint64_t> total_bytes{0};
};

// Reads them and waits. How many are in memory then; one that cannot be read is
// left to the step that wants it. `progress` may be null. REQUIRES: no turn.
size_t Prewarm(std::span<const uint64_t> uses, ExpertTiers& tiers,
               ThreadPool& pool, PrewarmProgress* progress);

}  // namespace muster::experts

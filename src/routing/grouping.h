// A batch's routing turned round: for each expert, its tokens. What
// expert-major computation walks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "routing/router.h"

namespace muster::routing {

// Groups of (token, slot) pairs. Group g is expert_ids[g] with the pairs
// [offsets[g], offsets[g + 1]). Experts ascend; within one, tokens ascend.
struct ExpertGroups {
  std::vector<uint32_t> expert_ids;  // [groups], only experts that were chosen
  std::vector<size_t> offsets;       // [groups + 1]
  std::vector<uint32_t> tokens;      // [num_tokens * top_k]
  std::vector<uint32_t> slots;       // [num_tokens * top_k]
};

// A counting sort. REQUIRES: every id < num_experts.
void GroupByExpert(const Routing& routing, uint32_t num_experts,
                   ExpertGroups* out);

}  // namespace muster::routing

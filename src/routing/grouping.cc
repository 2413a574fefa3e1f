#include "routing/grouping.h"

#include "base/check.h"

namespace muster::routing {

void GroupByExpert(const Routing& routing, uint32_t num_experts,
                   ExpertGroups* out) {
  std::vector<size_t> next(num_experts + size_t{1}, 0);  // then: where to write
  for (const uint32_t id : routing.ids) {
    CHECK_LT(id, num_experts);
    ++next[id + size_t{1}];
  }
  out->expert_ids.clear();
  out->offsets.assign(1, 0);
  for (uint32_t e = 0; e < num_experts; ++e) {
    const size_t count = next[e + size_t{1}];
    next[e + size_t{1}] += next[e];
    if (count == 0) continue;
    out->expert_ids.push_back(e);
    out->offsets.push_back(next[e + size_t{1}]);
  }
  out->tokens.resize(routing.ids.size());
  out->slots.resize(routing.ids.size());
  for (size_t i = 0; i < routing.ids.size(); ++i) {
    const size_t pair = next[routing.ids[i]]++;
    out->tokens[pair] = static_cast<uint32_t>(i / routing.top_k);
    out->slots[pair] = static_cast<uint32_t>(i % routing.top_k);
  }
}

}  // namespace muster::routing

// The tail of a token's routing: experts whose weight is so small that the
// token bears to have them computed from low-bit copies. Opt-in, and not exact.
// `muster eval --tail` prints what that costs and saves.
// Source: HOBBIT (Tang et al., 2024), which picks the precision of an expert
// that is missing by its weight.
#pragma once

#include <cstdint>
#include <vector>

#include "routing/router.h"

namespace muster::routing {

// Which choices have less than `weight` of the sum of their token's weights; a
// token's first never. A token whose weights are all 0 has none.
//   in_tail: [num_tokens, top_k], 0: not
void FindTail(const Routing& routing, float weight,
              std::vector<uint8_t>* in_tail);

}  // namespace muster::routing

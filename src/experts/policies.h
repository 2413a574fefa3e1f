// The policies that MakeEvictionPolicy knows, one file each. Each is O(1) or
// O(log residents) a use.
#pragma once

#include <memory>

#include "experts/eviction_policy.h"

namespace muster::experts {

// The one used longest ago goes first.
std::unique_ptr<EvictionPolicy> MakeLru(const PolicyShape& shape);

// The one with the lowest fading frequency
//   f(t) = sum over its uses at steps t_i of
//          tokens of the step that used it * 2^(-(t - t_i) / kLfruHalfLife)
// goes first; of equals the one used longest ago. Uses before it was last
// evicted count. A step begins where layers do not ascend.
inline constexpr double kLfruHalfLife = 8;  // steps; docs/simulate.md says why
std::unique_ptr<EvictionPolicy> MakeLfru(const PolicyShape& shape);

// Experts of layers that this step has passed go first, those used longest ago
// before others: they are wanted again only after all layers to come. Then the
// rest, likewise.
std::unique_ptr<EvictionPolicy> MakeLeastStale(const PolicyShape& shape);

}  // namespace muster::experts

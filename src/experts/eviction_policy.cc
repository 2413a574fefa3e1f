#include "experts/eviction_policy.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "base/check.h"
#include "experts/policies.h"

namespace muster::experts {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"lru", "lfru",
                                                    "least-stale"};
constexpr std::array kMakers = {MakeLru, MakeLfru, MakeLeastStale};
static_assert(kNames.size() == kMakers.size());

}  // namespace

std::span<const std::string_view> EvictionPolicyNames() { return kNames; }

Result<std::unique_ptr<EvictionPolicy>> MakeEvictionPolicy(
    std::string_view name, const PolicyShape& shape) {
  CHECK_EQ(shape.layer_of.size(), shape.num_experts);
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return kMakers[i](shape);
  }
  return InvalidArgument(fmt::format("no eviction policy '{}': there are {}",
                                     name, fmt::join(kNames, ", ")));
}

}  // namespace muster::experts

#include "runtime/routing_price.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace muster::runtime {
namespace {

using Routings = std::vector<routing::Routing>;  // [layers], of one token

void CompareChoices(const Routings& inexact, const Routings& exact,
                    RoutingPrice& price) {
  for (size_t layer = 0; layer < inexact.size(); ++layer) {
    const std::vector<uint32_t>& other = exact[layer].ids;
    price.num_choices += inexact[layer].ids.size();
    price.num_same_choices += static_cast<uint64_t>(
        std::ranges::count_if(inexact[layer].ids, [&](uint32_t id) {
          return std::ranges::find(other, id) != other.end();
        }));
  }
}

Status Walk(Engine& inexact, Engine& exact, std::span<const int32_t> tokens,
            size_t window, std::atomic<uint64_t>& done, RoutingPrice& price) {
  Routings inexact_routings, exact_routings;
  inexact.KeepRoutings(&inexact_routings);
  exact.KeepRoutings(&exact_routings);
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (i % window == 0) {
      inexact.Rewind(0);
      exact.Rewind(0);
    }
    ASSIGN_OR_RETURN(const auto ours, inexact.Append(tokens.subspan(i, 1)));
    ASSIGN_OR_RETURN(const auto theirs, exact.Append(tokens.subspan(i, 1)));
    price.comparison.Add(ours, theirs, tokens[i + 1]);
    CompareChoices(inexact_routings, exact_routings, price);
    done = i + 2;
  }
  return {};
}

}  // namespace

double RoutingPrice::same_choices_share() const {
  return num_choices == 0 ? 1
                          : static_cast<double>(num_same_choices) /
                                static_cast<double>(num_choices);
}

Result<RoutingPrice> PriceRouting(Engine& inexact, Engine& exact,
                                  std::span<const int32_t> tokens,
                                  size_t window, std::atomic<uint64_t>& done) {
  CHECK_GE(tokens.size(), 2u);
  CHECK_GE(window, 2u);
  RoutingPrice price;
  const auto inexact_before = inexact.tier_counters();
  const auto exact_before = exact.tier_counters();
  const Status walked = Walk(inexact, exact, tokens, window, done, price);
  inexact.KeepRoutings(nullptr);
  exact.KeepRoutings(nullptr);
  RETURN_IF_ERROR(walked);
  price.inexact = inexact.tier_counters().Since(inexact_before);
  price.exact = exact.tier_counters().Since(exact_before);
  return price;
}

}  // namespace muster::runtime

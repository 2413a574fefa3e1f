// What a RoutingChoice costs and saves on a text, beside exact routing.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/evaluation.h"
#include "telemetry/tier_counters.h"

namespace muster::runtime {

struct RoutingPrice {
  Comparison comparison;  // the reference routes exactly
  uint64_t num_choices = 0;
  uint64_t num_same_choices = 0;    // that exact routing makes too
  telemetry::TierCounters inexact;  // of this text alone
  telemetry::TierCounters exact;

  // Over all layers and tokens; includes what earlier choices changed in the
  // text's keys and values.
  double same_choices_share() const;
};

// Runs both engines over the text token by token, as an answer would be made:
// `inexact` by its RoutingChoice, `exact` as the router says. Begins anew
// each `window` tokens. Both forget what they had; where their experts are
// in tiers, those must be tiers of their own. Counts tokens in `done`. Blocks.
// Fails as Engine::Append does. REQUIRES: two engines of one model; at least 2
// tokens; 2 <= window <= both contexts.
Result<RoutingPrice> PriceRouting(Engine& inexact, Engine& exact,
                                  std::span<const int32_t> tokens,
                                  size_t window, std::atomic<uint64_t>& done);

}  // namespace muster::runtime

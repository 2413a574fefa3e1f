// What a run woke and what it cost: the report behind every answer.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/engine.h"
#include "telemetry/tier_counters.h"

namespace muster::cli {

struct RunSpeeds {
  size_t prompt_tokens = 0;
  double prompt_seconds = 0;
  size_t generated_tokens = 0;
  double generation_seconds = 0;  // of the tokens behind the first
  double load_seconds = 0;
  // Of experts in tiers: before the prompt, and behind it.
  telemetry::TierCounters tiers_before;
  telemetry::TierCounters tiers_after_prompt;
};

// Parameters that a token used: what is always on, and the routed experts'
// products that ran for it; beside the nominal figure of the formula.
struct MeasuredShare {
  double parameters_per_token = 0;
  double share = 0;
  double nominal_share = 0;
};

MeasuredShare MeasureShare(const runtime::Engine& engine);

// For people; several lines.
std::string ReportText(const runtime::Engine& engine, const RunSpeeds& speeds);

nlohmann::ordered_json ReportJson(const runtime::Engine& engine,
                                  const RunSpeeds& speeds);

}  // namespace muster::cli

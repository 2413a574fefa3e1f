// How long experts stay in memory and wait there, and which slept all along.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "experts/expert_tiers.h"

namespace muster::cli {

// For people; one line. Turns: layers that steps came to.
std::string ResidencyText(const experts::ExpertTiers& tiers);

nlohmann::ordered_json ResidencyJson(const experts::ExpertTiers& tiers);

}  // namespace muster::cli

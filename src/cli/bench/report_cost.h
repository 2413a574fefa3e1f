// What the report behind every answer costs while tokens run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench/measure.h"

namespace muster::cli {

// Seconds that counting the chosen experts takes for one decoded token: the
// counters alone, with random experts, on one thread. Switching the report off
// and on would drown this in the noise of a token. 0 for a dense model.
double ReportSecondsPerToken(const model::ModelConfig& config);

// Beside the fastest decode that was measured; a share of 0 when none was.
std::string ReportCostText(double seconds_per_token,
                           const std::vector<Measurement>& measurements);
nlohmann::ordered_json ReportCostJson(
    double seconds_per_token, const std::vector<Measurement>& measurements);

}  // namespace muster::cli

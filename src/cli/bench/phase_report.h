// Where the time of a token goes, beside what each kind of work reads and
// computes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/bench/measure.h"
#include "cli/bench/token_cost.h"

namespace muster::cli {

// costs: of one token of `measurement`.
std::string PhaseTable(const Measurement& measurement, const PhaseCosts& costs);

nlohmann::ordered_json PhaseJson(const Measurement& measurement,
                                 const PhaseCosts& costs);

}  // namespace muster::cli

// Hit rates over the share of experts that is cached, as a picture.
#pragma once

#include <string>

#include "cli/simulate/report.h"

namespace muster::cli {

// An SVG document: a line for each policy, axes, a legend.
std::string HitRatePlot(const SimulationReport& report);

}  // namespace muster::cli

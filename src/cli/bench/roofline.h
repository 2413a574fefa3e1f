// Measurements beside what the machine and the model allow.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench/machine_peak.h"
#include "cli/bench/measure.h"
#include "cli/bench/token_cost.h"

namespace muster::cli {

// The limit of one measurement: reading and computing overlap at best, so the
// longer of the two bounds the time.
struct Roof {
  Cost cost;  // of one token
  double memory_seconds = 0;
  double compute_seconds = 0;

  bool memory_bound() const { return memory_seconds >= compute_seconds; }
  double tokens_per_second() const;
};

Roof RoofOf(const Measurement& measurement, const runtime::LoadedModel& model,
            const MachinePeak& peak);

// One for each number of threads that was measured. Blocks for some seconds.
std::vector<MachinePeak> MeasurePeaksFor(
    const std::vector<Measurement>& measurements);

// The machine, and tables: cost of a token, limit and share reached; where the
// time goes. REQUIRES: the plan had phase_times.
std::string RooflineText(const std::vector<MachinePeak>& peaks,
                         const std::vector<Measurement>& measurements,
                         const runtime::LoadedModel& model);

nlohmann::ordered_json RooflineJson(
    const std::vector<MachinePeak>& peaks,
    const std::vector<Measurement>& measurements,
    const runtime::LoadedModel& model);

}  // namespace muster::cli

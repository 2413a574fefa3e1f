// What one forward step tells about itself.
#pragma once

#include <cstdint>
#include <vector>

#include "routing/router.h"
#include "runtime/phase_clock.h"
#include "telemetry/routing_stats.h"

namespace muster::runtime {

// Filled by Forward::Run where a pointer is set. All may be null.
struct StepRecord {
  // Counts of every routed token; must have the model's shape.
  telemetry::RoutingStats* stats = nullptr;
  // The routing of each layer of the last step; dense layers stay empty.
  std::vector<routing::Routing>* routings = nullptr;
  // Grows by the parameters of routed experts that the step multiplied, summed
  // over its tokens: counted from the products that ran, not from the choice.
  uint64_t* routed_parameters = nullptr;
  // Grows by the seconds that each kind of work took.
  PhaseTimes* phases = nullptr;
};

}  // namespace muster::runtime

// What `muster simulate` prints.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/simulate/sizes.h"
#include "experts/simulator.h"

namespace muster::cli {

// One policy with one size of cache.
struct SimulatedCase {
  std::string policy;
  CacheSize size;
  experts::Simulation simulation;              // `misses` may be empty
  std::optional<experts::PredictedCost> cost;  // none: an expert's size unknown
};

struct SimulationReport {
  std::string trace;  // its path
  std::string model;  // may be empty
  size_t num_tokens = 0;
  size_t num_prefill_tokens = 0;
  std::vector<uint32_t> num_experts;   // [num_layers]; 0: dense
  bool num_experts_assumed = false;    // from the largest id
  std::vector<uint64_t> expert_bytes;  // [num_layers]; empty: not known
  experts::SpeedModel speed;           // disk 0: not given
  std::vector<std::string> policies;
  std::vector<CacheSize> sizes;
  std::vector<SimulatedCase> cases;  // [policies, sizes]

  const SimulatedCase& Case(size_t policy, size_t size) const {
    return cases[policy * sizes.size() + size];
  }
  uint64_t bytes_in_all() const;  // of all experts; 0: not known
};

// Tables with a row for each size and a column for each policy. `by_layer` adds
// one with a row for each layer for each size.
std::string SimulationText(const SimulationReport& report, bool by_layer);

nlohmann::ordered_json SimulationJson(const SimulationReport& report);

}  // namespace muster::cli

// Who came into memory when, and who was used how much: what the report of
// residency and the next run's start are made from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "telemetry/power_histogram.h"

namespace muster::experts {

// All operations are O(1) and allocate nothing, but for the constructor. One
// thread at a time.
class Residency {
 public:
  explicit Residency(uint32_t num_experts)
      : loaded_(num_experts), last_use_(num_experts), uses_(num_experts) {}

  void BeginTurn() { ++turn_; }
  void Load(uint32_t expert) { loaded_[expert] = turn_; }
  // So many tokens use it. REQUIRES: some do.
  void Use(uint32_t expert, uint32_t num_tokens) {
    if (uses_[expert] > 0) histograms_.reuse_gap.Add(turn_ - last_use_[expert]);
    uses_[expert] += num_tokens;
    last_use_[expert] = turn_;
  }
  void Evict(uint32_t expert) {
    histograms_.lifetime.Add(turn_ - loaded_[expert]);
    histograms_.idle.Add(IdleTurns(expert));
  }

  // Turns since it was loaded or used. REQUIRES: it is resident.
  uint64_t IdleTurns(uint32_t expert) const {
    return turn_ - std::max(loaded_[expert], last_use_[expert]);
  }

  const telemetry::ResidencyHistograms& histograms() const {
    return histograms_;
  }
  // Tokens that used it since this was made; 0: it has been dormant.
  std::span<const uint64_t> uses() const { return uses_; }  // [num_experts]
  uint32_t num_dormant() const {
    return static_cast<uint32_t>(std::count(uses_.begin(), uses_.end(), 0));
  }

 private:
  uint64_t turn_ = 0;
  std::vector<uint64_t> loaded_;    // [num_experts] turn
  std::vector<uint64_t> last_use_;  // [num_experts] turn
  std::vector<uint64_t> uses_;      // [num_experts]
  telemetry::ResidencyHistograms histograms_;
};

}  // namespace muster::experts

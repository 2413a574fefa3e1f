// What a cache of experts would have done with a recorded trace: how many hits,
// which bytes, how fast that is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "experts/eviction_policy.h"
#include "experts/replay.h"

namespace muster::experts {

// The names that MakeSimulatedPolicy takes: EvictionPolicyNames() and "belady",
// the bound that no policy without knowledge of the future reaches.
std::span<const std::string_view> SimulatedPolicyNames();

// As MakeEvictionPolicy. `replay` must outlive it.
Result<std::unique_ptr<EvictionPolicy>> MakeSimulatedPolicy(
    std::string_view name, const Replay& replay);

// A cache that is empty at first. Room may be counted in experts or in bytes.
struct CacheRoom {
  uint64_t capacity = 0;
  std::span<const uint64_t> per_expert;  // [num_layers]: what one takes
};

// The least capacity for which Simulate works: all experts of one event.
uint64_t LeastCapacity(const Replay& replay,
                       std::span<const uint64_t> room_per_expert);

struct HitCount {
  uint64_t hits = 0;
  uint64_t misses = 0;

  uint64_t uses() const { return hits + misses; }
  // 1 when there was no use.
  double rate() const {
    return uses() == 0
               ? 1
               : static_cast<double>(hits) / static_cast<double>(uses());
  }
};

struct Simulation {
  HitCount decode;               // behind the prefill
  std::vector<HitCount> layers;  // [num_layers] of decode
  HitCount prefill;
  // Experts read in each layer for each token behind the prefill.
  //   [decoded tokens, num_layers]
  std::vector<uint32_t> misses;
  std::vector<uint64_t> prefill_misses;  // [num_layers]
};

// Replays all events. Those of an event's experts that are resident are hits,
// and are used; then the others are inserted, one by one, and push out experts
// that the event does not want. A prefill's event may push out experts of its
// own, which have been used by then. Deterministic. REQUIRES: `policy` is new,
// and capacity >= LeastCapacity().
Simulation Simulate(const Replay& replay, EvictionPolicy& policy,
                    const CacheRoom& room);

// A disk that waits for nothing but its rate, and a model that would take the
// same time for each token if all were in memory.
struct SpeedModel {
  double disk_bytes_per_second = 0;
  double compute_seconds = 0;  // a token, all experts in memory
};

struct PredictedCost {
  double bytes_per_token = 0;
  uint64_t prefill_bytes = 0;
  // Means over tokens of max(compute, missing bytes / disk), which perfect
  // overlap would reach, and of the sum, which no overlap would.
  double overlapped_seconds = 0;
  double serial_seconds = 0;
};

//   expert_bytes: [num_layers], of one expert
PredictedCost PredictCost(const Simulation& simulation,
                          std::span<const uint64_t> expert_bytes,
                          const SpeedModel& speed);

}  // namespace muster::experts

#include "experts/simulator.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "base/check.h"

namespace muster::experts {
namespace {

constexpr std::string_view kBelady = "belady";

// The cache: what is resident, and what the event at hand holds.
class SimulatedCache {
 public:
  SimulatedCache(const Replay& replay, EvictionPolicy& policy,
                 const CacheRoom& room)
      : replay_(replay),
        policy_(policy),
        room_(room),
        is_resident_(replay.num_experts_in_all()),
        pins_(replay.num_experts_in_all()) {}

  // Returns the misses.   tokens: that use each expert
  size_t RunDecode(uint32_t layer, std::span<const uint32_t> experts,
                   std::span<const uint32_t> tokens) {
    for (const uint32_t expert : experts) pins_[expert] = 1;
    const size_t misses = RunPrefill(layer, experts, tokens);
    for (const uint32_t expert : experts) pins_[expert] = 0;
    return misses;
  }

  // The same, and nothing is held.
  size_t RunPrefill(uint32_t layer, std::span<const uint32_t> experts,
                    std::span<const uint32_t> tokens) {
    policy_.BeginLayer(layer);
    missing_.clear();
    for (size_t i = 0; i < experts.size(); ++i) {
      if (is_resident_[experts[i]]) {
        policy_.Use(experts[i], tokens[i]);
      } else {
        missing_.push_back(i);
      }
    }
    for (const size_t i : missing_) Insert(experts[i], tokens[i]);
    return missing_.size();
  }

 private:
  void Insert(uint32_t expert, uint32_t num_tokens) {
    const uint64_t needed = RoomOf(expert);
    while (taken_ + needed > room_.capacity) Evict();
    policy_.Insert(expert, num_tokens);
    is_resident_[expert] = 1;
    taken_ += needed;
  }

  void Evict() {
    const uint32_t victim = policy_.Victim(pins_);
    CHECK(victim != kNoExpert);
    policy_.Remove(victim);
    is_resident_[victim] = 0;
    taken_ -= RoomOf(victim);
  }

  uint64_t RoomOf(uint32_t expert) const {
    return room_.per_expert[replay_.layer_of[expert]];
  }

  const Replay& replay_;
  EvictionPolicy& policy_;
  const CacheRoom room_;
  std::vector<uint8_t> is_resident_;  // [num_experts]
  std::vector<uint32_t> pins_;        // [num_experts]
  std::vector<size_t> missing_;       // positions in the event
  uint64_t taken_ = 0;
};

}  // namespace

std::span<const std::string_view> SimulatedPolicyNames() {
  static const std::vector<std::string_view> names = [] {
    const auto known = EvictionPolicyNames();
    std::vector<std::string_view> all(known.begin(), known.end());
    all.push_back(kBelady);
    return all;
  }();
  return names;
}

Result<std::unique_ptr<EvictionPolicy>> MakeSimulatedPolicy(
    std::string_view name, const Replay& replay) {
  if (name == kBelady) return MakeBelady(replay);
  auto policy = MakeEvictionPolicy(name, replay.shape());
  if (policy.ok()) return policy;
  return InvalidArgument(fmt::format("no policy '{}': there are {}", name,
                                     fmt::join(SimulatedPolicyNames(), ", ")));
}

uint64_t LeastCapacity(const Replay& replay,
                       std::span<const uint64_t> room_per_expert) {
  uint64_t least = 0;
  for (size_t i = 0; i < replay.events.size(); ++i) {
    const ReplayEvent& event = replay.events[i];
    const size_t begin = i == 0 ? 0 : replay.events[i - 1].end;
    const bool is_prefill = i < replay.num_prefill_events;
    const uint64_t held = is_prefill ? 1 : event.end - begin;
    least = std::max(least, held * room_per_expert[event.layer]);
  }
  return least;
}

Simulation Simulate(const Replay& replay, EvictionPolicy& policy,
                    const CacheRoom& room) {
  CHECK_EQ(room.per_expert.size(), replay.num_layers);
  Simulation out = {.layers = std::vector<HitCount>(replay.num_layers),
                    .prefill_misses = std::vector<uint64_t>(replay.num_layers)};
  out.misses.resize(replay.num_decoded_tokens() * replay.num_layers);
  SimulatedCache cache(replay, policy, room);
  const auto part_of = [&](const std::vector<uint32_t>& all, size_t i) {
    const size_t begin = i == 0 ? 0 : replay.events[i - 1].end;
    return std::span(all).subspan(begin, replay.events[i].end - begin);
  };
  const auto experts_of = [&](size_t i) { return part_of(replay.experts, i); };
  const auto tokens_of = [&](size_t i) { return part_of(replay.tokens, i); };
  const auto add = [](size_t uses, size_t misses, HitCount& count) {
    count.hits += uses - misses;
    count.misses += misses;
  };
  for (size_t i = 0; i < replay.num_prefill_events; ++i) {
    const uint32_t layer = replay.events[i].layer;
    const auto experts = experts_of(i);
    const size_t misses = cache.RunPrefill(layer, experts, tokens_of(i));
    add(experts.size(), misses, out.prefill);
    out.prefill_misses[layer] += misses;
  }
  for (size_t t = 0; t < replay.num_decoded_tokens(); ++t) {
    for (size_t i = replay.token_events[t]; i < replay.token_events[t + 1];
         ++i) {
      const uint32_t layer = replay.events[i].layer;
      const auto experts = experts_of(i);
      const size_t misses = cache.RunDecode(layer, experts, tokens_of(i));
      add(experts.size(), misses, out.decode);
      add(experts.size(), misses, out.layers[layer]);
      out.misses[t * replay.num_layers + layer] = static_cast<uint32_t>(misses);
    }
  }
  return out;
}

PredictedCost PredictCost(const Simulation& simulation,
                          std::span<const uint64_t> expert_bytes,
                          const SpeedModel& speed) {
  const size_t num_layers = simulation.layers.size();
  const size_t num_tokens = simulation.misses.size() / num_layers;
  PredictedCost cost;
  for (size_t layer = 0; layer < num_layers; ++layer) {
    cost.prefill_bytes +=
        simulation.prefill_misses[layer] * expert_bytes[layer];
  }
  if (num_tokens == 0) return cost;
  for (size_t t = 0; t < num_tokens; ++t) {
    uint64_t missing = 0;
    for (size_t layer = 0; layer < num_layers; ++layer) {
      missing +=
          simulation.misses[t * num_layers + layer] * expert_bytes[layer];
    }
    const double reading =
        static_cast<double>(missing) / speed.disk_bytes_per_second;
    cost.bytes_per_token += static_cast<double>(missing);
    cost.overlapped_seconds += std::max(speed.compute_seconds, reading);
    cost.serial_seconds += speed.compute_seconds + reading;
  }
  const auto n = static_cast<double>(num_tokens);
  cost.bytes_per_token /= n;
  cost.overlapped_seconds /= n;
  cost.serial_seconds /= n;
  return cost;
}

}  // namespace muster::experts

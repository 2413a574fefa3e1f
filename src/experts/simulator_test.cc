// The simulator beside a plain one, and Belady beside a search of all ways.
#include "experts/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>

#include "experts/policies.h"

namespace muster::experts {
namespace {

using testing::ElementsAre;

using Layers = std::vector<std::vector<uint32_t>>;  // the ids of each

RoutingTrace MakeTrace(std::vector<uint32_t> num_experts,
                       const std::vector<Layers>& tokens) {
  RoutingTrace trace = {.num_layers = num_experts.size(),
                        .num_tokens = tokens.size(),
                        .num_experts = num_experts};
  for (const Layers& layers : tokens) {
    for (const auto& ids : layers) {
      trace.ids.insert(trace.ids.end(), ids.begin(), ids.end());
      trace.ends.push_back(trace.ids.size());
    }
  }
  return trace;
}

// Tokens that take `top_k` of a layer's experts, low ids more often.
RoutingTrace RandomTrace(std::vector<uint32_t> num_experts, size_t num_tokens,
                         size_t top_k, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Layers> tokens(num_tokens);
  for (Layers& layers : tokens) {
    for (const uint32_t n : num_experts) {
      std::set<uint32_t> ids;
      while (n != 0 && ids.size() < top_k) {
        const auto a = static_cast<uint32_t>(random() % n);
        const auto b = static_cast<uint32_t>(random() % n);
        ids.insert(std::min(a, b));
      }
      layers.emplace_back(ids.begin(), ids.end());
    }
  }
  return MakeTrace(num_experts, tokens);
}

Simulation Replayed(const Replay& replay, std::string_view policy,
                    uint64_t capacity) {
  auto made = MakeSimulatedPolicy(policy, replay);
  EXPECT_TRUE(made.ok()) << made.status().message();
  const std::vector<uint64_t> one(replay.num_layers, 1);
  return Simulate(replay, **made, {.capacity = capacity, .per_expert = one});
}

// A cache of (layer, id) pairs that looks through everything each time.
uint64_t PlainHits(const RoutingTrace& trace, bool lru, size_t capacity) {
  using Expert = std::pair<size_t, uint32_t>;
  struct Use {
    size_t token;
    uint64_t number;
  };
  std::map<Expert, std::vector<Use>> uses;
  std::set<Expert> resident;
  uint64_t hits = 0, num_uses = 0;
  for (size_t t = 0; t < trace.num_tokens; ++t) {
    const auto goes_first = [&](const Expert& a, const Expert& b) {
      const auto fading = [&](const Expert& e) {
        double sum = 0;
        for (const Use& use : uses[e]) {
          sum += std::exp2(
              (static_cast<double>(use.token) - static_cast<double>(t)) /
              kLfruHalfLife);
        }
        return sum;
      };
      const double fa = lru ? 0 : fading(a), fb = lru ? 0 : fading(b);
      if (std::abs(fa - fb) > 1e-12 * fb) return fa < fb;
      return uses[a].back().number < uses[b].back().number;
    };
    for (size_t layer = 0; layer < trace.num_layers; ++layer) {
      std::vector<Expert> missing, wanted;
      for (const uint32_t id : trace.Experts(t, layer)) {
        wanted.emplace_back(layer, id);
        if (resident.contains(wanted.back())) {
          ++hits;
          uses[wanted.back()].push_back({t, ++num_uses});
        } else {
          missing.push_back(wanted.back());
        }
      }
      for (const Expert& expert : missing) {
        if (resident.size() == capacity) {
          std::vector<Expert> free;
          for (const Expert& e : resident) {
            if (std::find(wanted.begin(), wanted.end(), e) == wanted.end()) {
              free.push_back(e);
            }
          }
          resident.erase(
              *std::min_element(free.begin(), free.end(), goes_first));
        }
        resident.insert(expert);
        uses[expert].push_back({t, ++num_uses});
      }
    }
  }
  return hits;
}

TEST(SimulatorTest, HitsAreThoseOfAPlainSimulator) {
  for (const unsigned seed : {1, 2}) {
    const RoutingTrace trace = RandomTrace({12, 0, 12, 20}, 300, 3, seed);
    const Replay replay = MakeReplay(trace, 0);
    for (const uint64_t capacity : {3, 9, 20, 33}) {
      EXPECT_EQ(Replayed(replay, "lru", capacity).decode.hits,
                PlainHits(trace, true, capacity));
      EXPECT_EQ(Replayed(replay, "lfru", capacity).decode.hits,
                PlainHits(trace, false, capacity));
    }
  }
}

// The fewest misses that any choice of victims reaches.
uint64_t FewestMisses(const Replay& replay, uint64_t capacity) {
  std::map<std::set<uint32_t>, uint64_t> reached = {{{}, 0}};
  for (size_t i = 0, begin = 0; i < replay.events.size();
       begin = replay.events[i++].end) {
    const std::set<uint32_t> wanted(
        replay.experts.begin() + begin,
        replay.experts.begin() + replay.events[i].end);
    std::map<std::set<uint32_t>, uint64_t> next;
    for (const auto& [resident, misses] : reached) {
      std::set<uint32_t> all = resident;
      all.insert(wanted.begin(), wanted.end());
      const uint64_t now = misses + all.size() - resident.size();
      const std::vector<uint32_t> held(all.begin(), all.end());
      for (uint32_t bits = 0; bits < 1u << held.size(); ++bits) {
        std::set<uint32_t> kept;
        for (size_t e = 0; e < held.size(); ++e) {
          if ((bits >> e & 1) != 0) kept.insert(held[e]);
        }
        if (kept.size() != std::min<size_t>(capacity, held.size()) ||
            !std::includes(kept.begin(), kept.end(), wanted.begin(),
                           wanted.end())) {
          continue;
        }
        const auto [at, is_new] = next.try_emplace(kept, now);
        at->second = std::min(at->second, now);
      }
    }
    reached = std::move(next);
  }
  uint64_t fewest = UINT64_MAX;
  for (const auto& [resident, misses] : reached) {
    fewest = std::min(fewest, misses);
  }
  return fewest;
}

TEST(SimulatorTest, BeladyHasTheFewestMissesOfAllWays) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    const Replay replay = MakeReplay(RandomTrace({5, 4}, 12, 2, seed), 0);
    for (const uint64_t capacity : {3, 4, 6}) {
      EXPECT_EQ(Replayed(replay, "belady", capacity).decode.misses,
                FewestMisses(replay, capacity))
          << seed << " " << capacity;
    }
  }
}

TEST(SimulatorTest, NoPolicyIsBetterThanBelady) {
  const Replay replay = MakeReplay(RandomTrace({32, 32, 16}, 500, 4, 5), 0);
  for (const uint64_t capacity : {8, 20, 40}) {
    const uint64_t bound = Replayed(replay, "belady", capacity).decode.hits;
    for (const std::string_view policy : EvictionPolicyNames()) {
      EXPECT_LE(Replayed(replay, policy, capacity).decode.hits, bound)
          << policy;
    }
  }
}

TEST(SimulatorTest, WithRoomForAllEachExpertIsReadOnce) {
  const RoutingTrace trace = RandomTrace({9, 7}, 100, 2, 3);
  const Replay replay = MakeReplay(trace, 0);
  for (const std::string_view policy : SimulatedPolicyNames()) {
    const Simulation simulation = Replayed(replay, policy, 16);
    EXPECT_EQ(simulation.decode.misses, 16u);
    EXPECT_EQ(simulation.decode.uses(), 400u);
    EXPECT_EQ(simulation.layers[0].misses, 9u);
    EXPECT_EQ(simulation.layers[1].misses, 7u);
  }
}

TEST(SimulatorTest, ExpertsThatAnEventWantsDoNotPushEachOtherOut) {
  // 0 is the oldest when 2 comes, and is wanted beside it.
  const Replay replay = MakeReplay(MakeTrace({4}, {{{0}}, {{1}}, {{2, 0}}}), 0);
  const Simulation simulation = Replayed(replay, "lru", 2);
  EXPECT_EQ(simulation.decode.hits, 1u);
  EXPECT_THAT(simulation.misses, ElementsAre(1, 1, 1));
}

TEST(SimulatorTest, APrefillReadsTheUnionOfItsTokensOnce) {
  const RoutingTrace trace = MakeTrace(
      {4, 4}, {{{0, 1}, {2}}, {{1, 2}, {2}}, {{2, 3}, {0}}, {{0, 3}, {2}}});
  const Replay replay = MakeReplay(trace, 2);
  const Simulation simulation = Replayed(replay, "lru", 8);

  EXPECT_EQ(simulation.prefill.misses, 4u);
  EXPECT_THAT(simulation.prefill_misses, ElementsAre(3, 1));
  EXPECT_THAT(simulation.misses, ElementsAre(1, 1, 0, 0));
  EXPECT_EQ(simulation.decode.uses(), 6u);
}

TEST(SimulatorTest, APrefillMayWantMoreThanThereIsRoomFor) {
  const Replay replay = MakeReplay(RandomTrace({16, 16}, 40, 3, 8), 40);
  const std::vector<uint64_t> one(2, 1);
  EXPECT_EQ(LeastCapacity(replay, one), 1u);
  for (const std::string_view policy : SimulatedPolicyNames()) {
    EXPECT_EQ(Replayed(replay, policy, 2).prefill.misses,
              replay.experts.size());
  }
}

TEST(SimulatorTest, ALargeExpertPushesOutAsManyAsItNeedsRoomFor) {
  // Layer 1's experts take three times the room of layer 0's: one of them and
  // two of the others fit, and its second one pushes out two experts.
  const Replay replay = MakeReplay(
      MakeTrace({4, 4}, {{{0}, {0}}, {{1}, {0}}, {{0}, {1}}, {{1}, {1}}}), 0);
  const std::vector<uint64_t> room = {1, 3};
  auto policy = MakeSimulatedPolicy("lru", replay);
  ASSERT_TRUE(policy.ok());
  EXPECT_EQ(LeastCapacity(replay, room), 3u);
  const Simulation simulation =
      Simulate(replay, **policy, {.capacity = 5, .per_expert = room});
  EXPECT_THAT(simulation.misses, ElementsAre(1, 1, 1, 0, 0, 1, 1, 0));
}

TEST(SimulatorTest, CostIsTheDisksTimeBesideOrBehindTheComputing) {
  const Simulation simulation = {.layers = std::vector<HitCount>(2),
                                 .misses = {1, 0, 0, 2},
                                 .prefill_misses = {1, 1}};
  const PredictedCost cost =
      PredictCost(simulation, std::vector<uint64_t>{100, 200},
                  {.disk_bytes_per_second = 1000, .compute_seconds = 0.2});

  EXPECT_DOUBLE_EQ(cost.bytes_per_token, 250);
  EXPECT_EQ(cost.prefill_bytes, 300u);
  EXPECT_DOUBLE_EQ(cost.overlapped_seconds, (0.2 + 0.4) / 2);
  EXPECT_DOUBLE_EQ(cost.serial_seconds, (0.3 + 0.6) / 2);
}

TEST(SimulatorTest, AnUnknownPolicyIsRefusedWithTheKnownOnes) {
  const auto policy = MakeSimulatedPolicy("fifo", {});
  ASSERT_FALSE(policy.ok());
  EXPECT_EQ(policy.status().message(),
            "no policy 'fifo': there are lru, lfru, least-stale, belady");
}

}  // namespace
}  // namespace muster::experts

// The policies beside plain ones that look at every resident each time.
#include "experts/eviction_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "experts/policies.h"

namespace muster::experts {
namespace {

constexpr uint32_t kLayers = 4;
constexpr uint32_t kPerLayer = 12;
constexpr uint32_t kExperts = kLayers * kPerLayer;

std::vector<uint32_t> LayerOf() {
  std::vector<uint32_t> layer_of(kExperts);
  for (uint32_t e = 0; e < kExperts; ++e) layer_of[e] = e / kPerLayer;
  return layer_of;
}

std::unique_ptr<EvictionPolicy> Make(std::string_view name) {
  const std::vector<uint32_t> layer_of = LayerOf();
  auto policy = MakeEvictionPolicy(
      name,
      {.num_layers = kLayers, .num_experts = kExperts, .layer_of = layer_of});
  EXPECT_TRUE(policy.ok()) << policy.status().message();
  return std::move(policy).value();
}

// Remembers every use ever made.
struct PlainHistory {
  struct Moment {
    uint64_t step;
    uint64_t number;  // counts uses
  };
  std::map<uint32_t, std::vector<Moment>> uses;
  std::map<uint32_t, bool> resident;
  uint64_t step = 0;
  uint64_t num_uses = 0;
  uint32_t layer = 0;

  uint64_t LastUse(uint32_t expert) const {
    return uses.at(expert).back().number;
  }
  double FadedFrequency(uint32_t expert) const {
    double sum = 0;
    for (const Moment& use : uses.at(expert)) {
      sum += std::exp2(-static_cast<double>(step - use.step) / kLfruHalfLife);
    }
    return sum;
  }
};

// Does `a` go before `b`?
bool GoesFirst(std::string_view policy, const PlainHistory& history, uint32_t a,
               uint32_t b) {
  const bool older = history.LastUse(a) < history.LastUse(b);
  if (policy == "lru") return older;
  if (policy == "least-stale") {
    const bool a_passed = a / kPerLayer < history.layer;
    const bool b_passed = b / kPerLayer < history.layer;
    return a_passed != b_passed ? a_passed : older;
  }
  const double fa = history.FadedFrequency(a), fb = history.FadedFrequency(b);
  // Sums of the same uses may differ in their last bits only.
  return std::abs(fa - fb) > 1e-12 * fb ? fa < fb : older;
}

uint32_t PlainVictim(std::string_view policy, const PlainHistory& history,
                     const std::vector<uint32_t>& pins) {
  uint32_t best = kNoExpert;
  for (const auto& [expert, is_resident] : history.resident) {
    if (!is_resident || pins[expert] != 0) continue;
    if (best == kNoExpert || GoesFirst(policy, history, expert, best)) {
      best = expert;
    }
  }
  return best;
}

class PolicyTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(All, PolicyTest,
                         testing::Values("lru", "lfru", "least-stale"));

TEST_P(PolicyTest, PicksTheSameVictimsAsAPlainSearchOverAllUses) {
  for (const size_t capacity : {3, 11, 30}) {
    std::mt19937 random(7 + capacity);
    const auto policy = Make(GetParam());
    PlainHistory history;
    size_t num_resident = 0;
    const auto remove = [&](uint32_t expert) {
      policy->Remove(expert);
      history.resident[expert] = false;
      --num_resident;
    };
    for (int event = 0; event < 4000; ++event) {
      const uint32_t layer = event % kLayers;
      if (layer == 0 && event > 0) ++history.step;
      history.layer = layer;
      policy->BeginLayer(layer);
      // The lower of two draws: low indices are common.
      const auto first = static_cast<uint32_t>(random() % kPerLayer);
      const auto second = static_cast<uint32_t>(random() % kPerLayer);
      const uint32_t expert = layer * kPerLayer + std::min(first, second);
      std::vector<uint32_t> pins(kExperts);
      for (uint32_t& pin : pins) pin = random() % 8 == 0 ? 2 : 0;
      const bool hit = history.resident[expert];
      if (!hit && num_resident == capacity) {
        const uint32_t victim = policy->Victim(pins);
        ASSERT_EQ(victim, PlainVictim(GetParam(), history, pins)) << event;
        if (victim == kNoExpert) continue;
        remove(victim);
      }
      history.uses[expert].push_back({history.step, ++history.num_uses});
      if (hit) {
        policy->Use(expert, 1);
      } else {
        policy->Insert(expert, 1);
        history.resident[expert] = true;
        ++num_resident;
      }
      if (random() % 50 == 0) remove(expert);  // for a reason of its own
    }
  }
}

TEST_P(PolicyTest, PinnedExpertsSurvive) {
  const auto policy = Make(GetParam());
  std::vector<uint32_t> pins(kExperts);
  for (uint32_t e = 0; e < 5; ++e) policy->Insert(e, 1);
  pins[0] = pins[1] = pins[2] = pins[4] = 1;

  EXPECT_EQ(policy->Victim(pins), 3);
  pins[3] = 1;
  EXPECT_EQ(policy->Victim(pins), kNoExpert);
}

TEST_P(PolicyTest, NothingIsLeftWhenAllAreRemoved) {
  const auto policy = Make(GetParam());
  const std::vector<uint32_t> pins(kExperts);
  EXPECT_EQ(policy->Victim(pins), kNoExpert);
  for (uint32_t e = 0; e < kExperts; ++e) policy->Insert(e, 1);
  for (uint32_t e = 0; e < kExperts; ++e) policy->Remove(e * 5 % kExperts);

  EXPECT_EQ(policy->Victim(pins), kNoExpert);
}

TEST(LfruTest, AFrequentExpertOutlivesOneUsedOnceSince) {
  const auto policy = Make("lfru");
  const std::vector<uint32_t> pins(kExperts);
  policy->Insert(0, 1);
  for (int i = 0; i < 3; ++i) policy->Use(0, 1);
  policy->Insert(1, 1);

  EXPECT_EQ(policy->Victim(pins), 1);
}

TEST(LfruTest, FrequencyFadesWithAgeForAsLongAsAProcessRuns) {
  const auto policy = Make("lfru");
  const std::vector<uint32_t> pins(kExperts);
  policy->Insert(0, 1);
  for (int i = 0; i < 3; ++i) policy->Use(0, 1);
  // A long time, and just after weights were scaled back, when that of a new
  // use is smallest.
  const int steps = static_cast<int>(31 * 500 * kLfruHalfLife) + 5;
  for (int step = 0; step < steps; ++step) policy->BeginLayer(0);
  policy->Insert(1, 1);
  EXPECT_EQ(policy->Victim(pins), 0);

  for (int i = 0; i < 3; ++i) policy->Use(0, 1);
  EXPECT_EQ(policy->Victim(pins), 1);
}

TEST(LeastStaleTest, ALayerThatIsPassedGivesWayBeforeOneToCome) {
  const auto policy = Make("least-stale");
  const std::vector<uint32_t> pins(kExperts);
  policy->Insert(3 * kPerLayer, 1);
  policy->BeginLayer(0);
  policy->Insert(0, 1);
  EXPECT_EQ(policy->Victim(pins), 3 * kPerLayer);

  policy->BeginLayer(1);
  EXPECT_EQ(policy->Victim(pins), 0);
}

TEST(EvictionPolicyTest, AnUnknownNameIsRefusedWithTheKnownOnes) {
  const auto policy = MakeEvictionPolicy("random", {});
  ASSERT_FALSE(policy.ok());
  EXPECT_EQ(policy.status().code(), Code::kInvalidArgument);
  EXPECT_THAT(policy.status().message(),
              testing::HasSubstr("there are lru, lfru, least-stale"));
}

}  // namespace
}  // namespace muster::experts

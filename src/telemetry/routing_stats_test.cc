#include "telemetry/routing_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace muster::telemetry {
namespace {

using ::testing::ElementsAre;

// Layer 1 is dense; layers 0 and 2 differ in shape.
RoutingStats ThreeLayers() { return RoutingStats({4, 0, 3}, {2, 0, 1}); }

// CASES S01, R18.
TEST(RoutingStatsTest, CountsSumToTokensTimesTopKUnderTheTrueLayerNumber) {
  RoutingStats stats = ThreeLayers();
  stats.Record(0, std::vector<uint32_t>{0, 1, 0, 3});
  stats.Record(2, std::vector<uint32_t>{2, 2});
  EXPECT_THAT(stats.counts(0), ElementsAre(2, 1, 0, 1));
  EXPECT_THAT(stats.counts(2), ElementsAre(0, 0, 2));
  EXPECT_EQ(stats.tokens(0), 2u);
  EXPECT_EQ(stats.tokens(1), 0u);
  EXPECT_EQ(stats.tokens(2), 2u);
}

TEST(RoutingStatsTest, DistinctAndTopCountOnlyWhatWasChosen) {
  RoutingStats stats = ThreeLayers();
  stats.Record(0, std::vector<uint32_t>{3, 1, 3, 0});
  EXPECT_EQ(stats.distinct(0), 3u);
  EXPECT_EQ(stats.distinct_in_all(), 3u);
  EXPECT_EQ(stats.experts_in_all(), 7u);
  EXPECT_THAT(stats.Top(0, 2), ElementsAre(3, 0));
  EXPECT_THAT(stats.Top(0, 9), ElementsAre(3, 0, 1));
}

// CASES S03.
TEST(RoutingStatsTest, BalancednessIsTheMeanOverLayersOfMeanByLargest) {
  RoutingStats stats = ThreeLayers();
  EXPECT_EQ(stats.Balancedness(), 0);
  stats.Record(0, std::vector<uint32_t>{0, 1, 2, 3});     // even: 1
  stats.Record(2, std::vector<uint32_t>{1, 1, 1, 1, 1});  // one expert: 1/3
  EXPECT_DOUBLE_EQ(stats.Balancedness(), (1.0 + 1.0 / 3) / 2);
}

TEST(RoutingStatsTest, MergeAdds) {
  RoutingStats a = ThreeLayers(), b = ThreeLayers();
  a.Record(2, std::vector<uint32_t>{0});
  b.Record(2, std::vector<uint32_t>{0, 1});
  a.Merge(b);
  EXPECT_THAT(a.counts(2), ElementsAre(2, 1, 0));
  EXPECT_EQ(a.tokens(2), 3u);
  EXPECT_EQ(a.steps(2), 2u);
  EXPECT_EQ(a.MeanDistinctPerStep(2), 1.5);
}

// Merging must not make a later step's expert look already counted.
TEST(RoutingStatsTest, StepsAfterAMergeAreCountedInFull) {
  RoutingStats a = ThreeLayers(), b = ThreeLayers();
  a.Record(2, std::vector<uint32_t>{0});
  b.Record(2, std::vector<uint32_t>{1});
  b.Record(2, std::vector<uint32_t>{1});
  a.Merge(b);
  a.Record(2, std::vector<uint32_t>{0, 1});
  EXPECT_EQ(a.MeanDistinctPerStep(2), (1.0 + 1 + 1 + 2) / 4);
}

TEST(RoutingStatsTest, AStepCountsEachOfItsExpertsOnce) {
  RoutingStats stats = ThreeLayers();
  EXPECT_EQ(stats.MeanDistinctPerStep(0), 0);
  stats.Record(0, std::vector<uint32_t>{0, 1, 1, 0, 1, 2});  // 3 tokens
  stats.Record(0, std::vector<uint32_t>{0, 1});
  stats.Record(0, {});  // no tokens, no step
  EXPECT_EQ(stats.steps(0), 2u);
  EXPECT_EQ(stats.MeanDistinctPerStep(0), 2.5);
  EXPECT_EQ(stats.MeanDistinctPerStep(2), 0);
}

TEST(RoutingStatsTest, ResetForgetsCountsAndKeepsTheShape) {
  RoutingStats stats = ThreeLayers();
  stats.Record(0, std::vector<uint32_t>{0, 1});
  stats.Reset();
  EXPECT_EQ(stats.tokens(0), 0u);
  EXPECT_EQ(stats.steps(0), 0u);
  EXPECT_EQ(stats.num_layers(), 3u);
  stats.Record(0, std::vector<uint32_t>{0, 1});
  EXPECT_EQ(stats.MeanDistinctPerStep(0), 2);
}

// CASES S01, over many steps of random sizes.
TEST(RoutingStatsTest, EveryChoiceOfEveryTokenIsCountedOnce) {
  std::mt19937 rng(1);
  RoutingStats stats({0, 60, 64}, {0, 4, 8});
  uint64_t tokens = 0;
  for (int step = 0; step < 50; ++step) {
    const size_t num_tokens = rng() % 40;
    tokens += num_tokens;
    for (const uint32_t layer : {1u, 2u}) {
      std::vector<uint32_t> ids(num_tokens * stats.top_k(layer));
      for (uint32_t& id : ids) {
        id = static_cast<uint32_t>(rng()) % stats.num_experts(layer);
      }
      stats.Record(layer, ids);
    }
  }
  for (const size_t layer : {1, 2}) {
    const auto counts = stats.counts(layer);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), uint64_t{0}),
              tokens * stats.top_k(layer));
    EXPECT_EQ(stats.tokens(layer), tokens);
  }
}

// CASES S07: top_k is the layer's own, not a constant.
TEST(RoutingStatsTest, AnyTopKIsCounted) {
  for (const uint32_t k : {1u, 2u, 6u, 9u}) {
    RoutingStats stats({16}, {k});
    stats.Record(0, std::vector<uint32_t>(3 * k, 5));
    EXPECT_EQ(stats.tokens(0), 3u);
  }
}

TEST(RoutingStatsDeathTest, RefusesWhatOnlyABugCanSend) {
  RoutingStats stats = ThreeLayers();
  EXPECT_DEATH(stats.Record(3, {}), "layer");
  EXPECT_DEATH(stats.Record(1, std::vector<uint32_t>{0}), "num_experts");
  EXPECT_DEATH(stats.Record(0, std::vector<uint32_t>{0}), "top_k");
  EXPECT_DEATH(stats.Record(0, std::vector<uint32_t>{0, 4}), "id");
  EXPECT_DEATH(RoutingStats({4}, {5}), "top_k");
}

}  // namespace
}  // namespace muster::telemetry

#include "telemetry/routing_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
}

}  // namespace
}  // namespace muster::telemetry

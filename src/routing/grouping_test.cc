#include "routing/grouping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <unordered_set>

#include "routing/expert_id.h"

namespace muster::routing {
namespace {

using ::testing::ElementsAre;

TEST(GroupingTest, TokensOfAnExpertStandTogetherInOrder) {
  const Routing routing{
      .num_tokens = 3, .top_k = 2, .ids = {5, 1, 1, 0, 5, 1}, .weights = {}};
  ExpertGroups groups;
  GroupByExpert(routing, 8, &groups);
  EXPECT_THAT(groups.expert_ids, ElementsAre(0, 1, 5));
  EXPECT_THAT(groups.offsets, ElementsAre(0, 1, 4, 6));
  EXPECT_THAT(groups.tokens, ElementsAre(1, 0, 1, 2, 0, 2));
  EXPECT_THAT(groups.slots, ElementsAre(1, 1, 0, 1, 0, 0));
}

TEST(GroupingTest, EveryPairIsInItsExpertsGroupOnce) {
  std::mt19937 rng(1);
  ExpertGroups groups;  // reused: what an earlier batch left must not matter
  for (const uint32_t num_experts : {896u, 60u, 1u, 128u}) {
    for (const size_t num_tokens : {1, 7, 100}) {
      Routing routing{
          .num_tokens = num_tokens, .top_k = 3, .ids = {}, .weights = {}};
      for (size_t i = 0; i < num_tokens * 3; ++i) {
        routing.ids.push_back(static_cast<uint32_t>(rng()) % num_experts);
      }
      GroupByExpert(routing, num_experts, &groups);
      ASSERT_EQ(groups.offsets.size(), groups.expert_ids.size() + 1);
      ASSERT_EQ(groups.offsets.back(), routing.ids.size());
      ASSERT_EQ(groups.tokens.size(), routing.ids.size());
      EXPECT_TRUE(std::ranges::is_sorted(groups.expert_ids));
      std::vector<int> seen(routing.ids.size());
      for (size_t g = 0; g < groups.expert_ids.size(); ++g) {
        ASSERT_LT(groups.offsets[g], groups.offsets[g + 1]) << "empty group";
        size_t last = 0;
        for (size_t p = groups.offsets[g]; p < groups.offsets[g + 1]; ++p) {
          const size_t pair = groups.tokens[p] * size_t{3} + groups.slots[p];
          ASSERT_EQ(routing.ids[pair], groups.expert_ids[g]);
          ASSERT_EQ(++seen[pair], 1);
          ASSERT_GE(pair, last);
          last = pair;
        }
      }
    }
  }
}

TEST(GroupingDeathTest, AnIdBeyondTheExpertsIsABug) {
  const Routing routing{.num_tokens = 1, .top_k = 1, .ids = {4}, .weights = {}};
  ExpertGroups groups;
  EXPECT_DEATH(GroupByExpert(routing, 4, &groups), "num_experts");
}

TEST(ExpertIdTest, OrdersByLayerAndHashesBothParts) {
  EXPECT_LT((ExpertId{0, 9}), (ExpertId{1, 0}));
  EXPECT_EQ((ExpertId{2, 3}), (ExpertId{2, 3}));
  std::unordered_set<ExpertId> ids;
  for (uint32_t layer = 0; layer < 10; ++layer) {
    for (uint32_t index = 0; index < 10; ++index) ids.insert({layer, index});
  }
  EXPECT_EQ(ids.size(), 100u);
}

TEST(GroupingTest, NoTokensGiveNoGroups) {
  ExpertGroups groups;
  GroupByExpert({}, 4, &groups);
  EXPECT_TRUE(groups.expert_ids.empty());
  EXPECT_THAT(groups.offsets, ElementsAre(0));
}

}  // namespace
}  // namespace muster::routing

#include "routing/grouping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::routing {
namespace {

using ::testing::ElementsAre;

TEST(GroupingTest, TokensOfAnExpertStandTogetherInOrder) {
  const Routing routing{.num_tokens = 3,
                        .top_k = 2,
                        .ids = {5, 1, 1, 0, 5, 1},
                        .weights = {}};
  ExpertGroups groups;
  GroupByExpert(routing, 8, &groups);
  EXPECT_THAT(groups.expert_ids, ElementsAre(0, 1, 5));
  EXPECT_THAT(groups.offsets, ElementsAre(0, 1, 4, 6));
  EXPECT_THAT(groups.tokens, ElementsAre(1, 0, 1, 2, 0, 2));
  EXPECT_THAT(groups.slots, ElementsAre(1, 1, 0, 1, 0, 0));
}

TEST(GroupingTest, NoTokensGiveNoGroups) {
  ExpertGroups groups;
  GroupByExpert({}, 4, &groups);
  EXPECT_TRUE(groups.expert_ids.empty());
  EXPECT_THAT(groups.offsets, ElementsAre(0));
}

}  // namespace
}  // namespace muster::routing

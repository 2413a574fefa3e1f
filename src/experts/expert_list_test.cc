#include "experts/expert_list.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::experts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Three experts, a dense layer, four experts.
ExpertTable SmallTable() {
  return ExpertTable(
      {{.num_experts = 3, .top_k = 1}, {}, {.num_experts = 4, .top_k = 1}});
}

TEST(ExpertListTest, NamesExpertsAndWholeLayers) {
  EXPECT_THAT(*ParseExpertList("2:1,0:2,2:3", SmallTable()),
              ElementsAre(2, 4, 6));
  EXPECT_THAT(*ParseExpertList("2:*,0:0,2:1", SmallTable()),
              ElementsAre(0, 3, 4, 5, 6));
}

TEST(ExpertListTest, AFileMayHaveLinesAndComments) {
  EXPECT_THAT(
      *ParseExpertList("# hot ones\n0:1\r\n2:0 2:1 # 2:2\n0:2", SmallTable()),
      ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(*ParseExpertList(" \n,", SmallTable()), IsEmpty());
}

TEST(ExpertListTest, NamesTheItemThatIsNone) {
  for (const char* bad : {"7", ":1", "0:", "0:x", "0:1:2", "-1:0", "0:1-2",
                          "0:99999999999", "0:3", "1:0", "1:*", "3:0", "*:1"}) {
    const auto list = ParseExpertList(fmt::format("2:1,{}", bad), SmallTable());
    ASSERT_FALSE(list.ok()) << bad;
    EXPECT_EQ(list.status().code(), Code::kInvalidArgument);
    EXPECT_THAT(list.status().message(), HasSubstr(fmt::format("'{}'", bad)));
  }
}

}  // namespace
}  // namespace muster::experts

#include "runtime/token_chances.h"

#include <gtest/gtest.h>

#include <cmath>

namespace muster::runtime {
namespace {

TEST(TokenChancesTest, AreOfTheSoftmaxOfAllLogits) {
  const std::vector<float> logits = {0.0f, std::log(3.0f), std::log(4.0f),
                                     std::log(2.0f)};
  const TokenChances chances = ChancesOf(logits, 0, 2);
  EXPECT_EQ(chances.chosen.token, 0);
  EXPECT_NEAR(chances.chosen.log_probability, std::log(0.1), 1e-6);
  ASSERT_EQ(chances.top.size(), 2u);
  EXPECT_EQ(chances.top[0].token, 2);
  EXPECT_NEAR(chances.top[0].log_probability, std::log(0.4), 1e-6);
  EXPECT_EQ(chances.top[1].token, 1);
  EXPECT_NEAR(chances.top[1].log_probability, std::log(0.3), 1e-6);
}

TEST(TokenChancesTest, TiesGoToTheLowestTokenAndNoMoreThanAllAreTold) {
  const std::vector<float> logits = {1, 2, 2, 1};
  const TokenChances chances = ChancesOf(logits, 3, 9);
  ASSERT_EQ(chances.top.size(), 4u);
  EXPECT_EQ(chances.top[0].token, 1);
  EXPECT_EQ(chances.top[1].token, 2);
  EXPECT_EQ(chances.top[2].token, 0);
  EXPECT_EQ(chances.top[3].token, 3);
  EXPECT_TRUE(ChancesOf(logits, 3, 0).top.empty());
}

}  // namespace
}  // namespace muster::runtime

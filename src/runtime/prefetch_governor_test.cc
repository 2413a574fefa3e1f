#include "runtime/prefetch_governor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace muster::runtime {
namespace {

using Governor = PrefetchGovernor;
constexpr uint32_t kNum = Governor::kNumChoices;

// Steps whose seconds depend on how many layers ahead they guess.
void RunSteps(Governor& governor, uint64_t num_steps,
              const std::array<double, kNum>& seconds) {
  for (uint64_t i = 0; i < num_steps; ++i) {
    governor.EndStep(1, seconds[governor.layers_ahead()]);
  }
}

// One whose first trial begins.
Governor MakeReady() {
  Governor governor({});
  RunSteps(governor, Governor::kStepsBefore, {1, 2, 3});
  return governor;
}

TEST(PrefetchGovernorTest, AtFirstThereIsNoPrefetch) {
  Governor governor({});
  for (uint64_t i = 0; i < Governor::kStepsBefore + Governor::kWindowSteps;
       ++i) {
    EXPECT_EQ(governor.layers_ahead(), 0u);
    governor.EndStep(1, 1);
  }
  EXPECT_EQ(governor.layers_ahead(), 1u);
}

TEST(PrefetchGovernorTest, ATrialGivesEachChoiceTheSameNumberOfSteps) {
  Governor governor = MakeReady();
  std::array<uint32_t, kNum> steps{};
  for (uint32_t i = 0; i < Governor::kTrialSteps; ++i) {
    EXPECT_FALSE(governor.last_trial());
    ++steps[governor.layers_ahead()];
    governor.EndStep(1, 1);
  }
  EXPECT_TRUE(governor.last_trial());
  for (const uint32_t count : steps) {
    EXPECT_EQ(count, Governor::kTrialSteps / kNum);
  }
}

TEST(PrefetchGovernorTest, TheFastestStays) {
  for (uint32_t best = 0; best < kNum; ++best) {
    Governor governor = MakeReady();
    std::array<double, kNum> seconds;
    seconds.fill(2);
    seconds[best] = 1;
    RunSteps(governor, Governor::kTrialSteps, seconds);
    EXPECT_EQ(governor.layers_ahead(), best);
    EXPECT_EQ(governor.last_trial()->step_seconds, seconds);
    EXPECT_EQ(governor.last_trial()->gained_seconds(), best == 0 ? 0 : 1);
  }
}

TEST(PrefetchGovernorTest, WhatGainsNextToNothingIsOff) {
  Governor governor = MakeReady();
  RunSteps(governor, Governor::kTrialSteps, {1, 0.99, 0.985});
  EXPECT_EQ(governor.layers_ahead(), 0u);
}

TEST(PrefetchGovernorTest, AnOutlierDecidesNothing) {
  Governor governor = MakeReady();
  RunSteps(governor, 1, {1, 0.9, 0.95});
  governor.EndStep(1, 1e3);  // in the first window of none
  RunSteps(governor, Governor::kWindowSteps - 2, {1, 0.9, 0.95});
  EXPECT_EQ(governor.layers_ahead(), 1u);
  governor.EndStep(1, 1e3);  // not measured: the window's first
  governor.EndStep(1, 1e3);
  RunSteps(governor, Governor::kTrialSteps - Governor::kWindowSteps - 2,
           {1, 0.9, 0.95});
  EXPECT_EQ(governor.layers_ahead(), 1u);
  EXPECT_DOUBLE_EQ(governor.last_trial()->step_seconds[1], 0.9);
}

TEST(PrefetchGovernorTest, LaterTrialsLookAgainTheLaterTheMoreOftenItHolds) {
  Governor governor = MakeReady();
  uint64_t stay = Governor::kFirstStay;
  for (int trial = 0; trial < 7; ++trial) {
    RunSteps(governor, Governor::kTrialSteps, {2, 1, 2});
    RunSteps(governor, stay - 1, {2, 1, 2});
    EXPECT_EQ(governor.layers_ahead(), 1u);
    RunSteps(governor, 1, {2, 1, 2});
    EXPECT_EQ(governor.layers_ahead(), 0u);  // a trial begins with none
    stay = std::min(2 * stay, Governor::kLongestStay);
  }
  RunSteps(governor, Governor::kTrialSteps, {1, 2, 2});  // things have changed
  EXPECT_EQ(governor.layers_ahead(), 0u);
  RunSteps(governor, Governor::kFirstStay, {1, 2, 2});
  governor.EndStep(1, 1);
  RunSteps(governor, Governor::kWindowSteps - 1, {1, 2, 2});
  EXPECT_EQ(governor.layers_ahead(), 1u);  // the second window of a trial
}

TEST(PrefetchGovernorTest, StepsOfOtherNumbersOfRowsAreNotComparedInAWindow) {
  Governor governor = MakeReady();
  for (uint32_t i = 0; i < Governor::kTrialSteps; ++i) {
    governor.EndStep(1 + i % 2, 1);
  }
  EXPECT_FALSE(governor.last_trial());
  RunSteps(governor, Governor::kTrialSteps, {2, 1, 2});
  ASSERT_TRUE(governor.last_trial());
  EXPECT_EQ(governor.last_trial()->step_seconds[1], 1);
}

TEST(PrefetchGovernorTest, WhatIsFixedIsNotTriedOut) {
  Governor governor(3);
  for (uint32_t i = 0; i < 2 * Governor::kTrialSteps; ++i) {
    EXPECT_EQ(governor.layers_ahead(), 3u);
    governor.EndStep(1, 1);
  }
  EXPECT_FALSE(governor.last_trial());
}

}  // namespace
}  // namespace muster::runtime

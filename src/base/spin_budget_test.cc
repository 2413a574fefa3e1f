#include "base/spin_budget.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

using std::chrono::milliseconds;

void TakeTime(SpinBudget::Clock::duration time) {
  const auto start = SpinBudget::Clock::now();
  while (SpinBudget::Clock::now() - start < time) {
  }
}

TEST(SpinBudgetTest, WhatIsThereAlreadyNeedsNoSleep) {
  SpinBudget budget;
  budget.Wait([] { return true; }, [] { FAIL() << "slept"; });
}

TEST(SpinBudgetTest, WhatDoesNotComeIsSleptFor) {
  SpinBudget budget;
  bool slept = false;
  budget.Wait([] { return false; }, [&] { slept = true; });
  EXPECT_TRUE(slept);
}

TEST(SpinBudgetTest, LongWaitsMakeSpinningShorterAndShortOnesLonger) {
  SpinBudget budget;
  for (int i = 0; i < 40; ++i) budget.Learn(milliseconds(1));
  EXPECT_EQ(budget.budget(), SpinBudget::Clock::duration::zero());
  budget.Learn(SpinBudget::kLongest / 10);
  const auto first = budget.budget();
  EXPECT_GT(first, SpinBudget::Clock::duration::zero());
  budget.Learn(SpinBudget::kLongest / 10);
  EXPECT_GT(budget.budget(), first);
  for (int i = 0; i < 40; ++i) budget.Learn(SpinBudget::kLongest / 10);
  EXPECT_EQ(budget.budget(), SpinBudget::kLongest);
}

TEST(SpinBudgetTest, AThreadThatLostItsCoreWhileSpinningSleepsTheNextTime) {
  SpinBudget budget;
  int looks = 0;
  // As if the core were gone for a while between two looks.
  const auto ready = [&] {
    if (++looks == 20) TakeTime(milliseconds(1));
    return looks > 20;
  };
  budget.Wait(ready, [] {});
  EXPECT_EQ(budget.budget(), SpinBudget::Clock::duration::zero());
}

}  // namespace
}  // namespace muster

#include "runtime/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::runtime {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;

MemoryInfo Machine(uint64_t available_bytes) {
  return {.total_bytes = 16 * kGiB, .available_bytes = available_bytes};
}

// A model of 5 GiB, 4 of them experts.
MemoryDemand Demand() {
  return {.all_bytes = 5 * kGiB,
          .pinned_bytes = 300 * kMiB,
          .experts_bytes = 4 * kGiB,
          .floor_bytes = 20 * kMiB,
          .kv_bytes = 100 * kMiB,
          .working_bytes = 100 * kMiB,
          .staging_bytes = 30 * kMiB};
}

TEST(MemoryPlanTest, AllInMemoryWhereItFits) {
  const auto plan = PlanMemory(Demand(), 0, Machine(8 * kGiB));
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_FALSE(plan->tiered);
  EXPECT_EQ(plan->spare_bytes() + plan->margin_bytes + 200 * kMiB + 5 * kGiB,
            8 * kGiB);
}

TEST(MemoryPlanTest, WhatIsLeftOfTheBudgetIsForExperts) {
  const auto plan = PlanMemory(Demand(), 2 * kGiB, Machine(8 * kGiB));
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_TRUE(plan->tiered);
  EXPECT_EQ(plan->budget_bytes, 2 * kGiB);
  EXPECT_EQ(plan->cache_bytes + plan->margin_bytes + 530 * kMiB, 2 * kGiB);
  EXPECT_THAT(Describe(*plan), HasSubstr("2.00 GiB of memory"));
}

TEST(MemoryPlanTest, WithoutABudgetItIsWhatTheProcessMayUse) {
  MemoryInfo memory = Machine(8 * kGiB);
  memory.cgroup_limit_bytes = 3 * kGiB;
  memory.cgroup_used_bytes = kGiB;
  const auto plan = PlanMemory(Demand(), 0, memory);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_TRUE(plan->tiered);
  EXPECT_EQ(plan->budget_bytes, 2 * kGiB);
}

TEST(MemoryPlanTest, TheSmallestBudgetThatWorksIsTheOneItNames) {
  const auto too_small = PlanMemory(Demand(), 500 * kMiB, Machine(8 * kGiB));
  EXPECT_EQ(too_small.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(too_small.status().message(), HasSubstr("--ram"));
  // The margin grows with the budget: from what was named, at most 2 % more.
  uint64_t budget = 500 * kMiB;
  while (!PlanMemory(Demand(), budget, Machine(8 * kGiB)).ok()) budget += kMiB;
  const auto least = PlanMemory(Demand(), budget, Machine(8 * kGiB));
  EXPECT_GE(least->cache_bytes, 20 * kMiB);
  EXPECT_LE(least->cache_bytes, 22 * kMiB);
}

TEST(MemoryPlanTest, MoreThanThereIsIsRefusedWithBothNumbers) {
  const auto plan = PlanMemory(Demand(), 9 * kGiB, Machine(8 * kGiB));
  EXPECT_EQ(plan.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(plan.status().message(), HasSubstr("9.00 GiB"));
  EXPECT_THAT(plan.status().message(), HasSubstr("8.00 GiB"));
}

TEST(MemoryPlanTest, ADenseModelFitsOrDoesNot) {
  const MemoryDemand dense = {.all_bytes = kGiB, .pinned_bytes = kGiB};
  EXPECT_FALSE(PlanMemory(dense, 2 * kGiB, Machine(8 * kGiB))->tiered);
  EXPECT_FALSE(PlanMemory(dense, kGiB, Machine(8 * kGiB)).ok());
}

TEST(MemoryPlanTest, WhereNothingIsKnownAllIsLoaded) {
  EXPECT_FALSE(PlanMemory(Demand(), 0, Machine(0))->tiered);
}

}  // namespace
}  // namespace muster::runtime

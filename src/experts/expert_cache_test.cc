#include "experts/expert_cache.h"

#include <gtest/gtest.h>

#include <cstring>

namespace muster::experts {
namespace {

constexpr size_t kSmall = 2 * kExpertAlignment;
constexpr size_t kLarge = 3 * kExpertAlignment;

// Two layers of 4 experts, and one of 2 larger ones behind a dense layer.
ExpertTable MixedTable() {
  return ExpertTable(
      {{.num_experts = 4, .top_k = 2, .layout = {.size_bytes = kSmall}},
       {.num_experts = 4, .top_k = 2, .layout = {.size_bytes = kSmall}},
       {},
       {.num_experts = 2, .top_k = 1, .layout = {.size_bytes = kLarge}}});
}

// One layer of 8 experts.
ExpertTable FlatTable() {
  return ExpertTable(
      {{.num_experts = 8, .top_k = 2, .layout = {.size_bytes = kSmall}}});
}

std::unique_ptr<ExpertCache> MakeCache(const ExpertTable& table,
                                       uint64_t budget_bytes) {
  auto cache = ExpertCache::Create(table, {.budget_bytes = budget_bytes});
  EXPECT_TRUE(cache.ok()) << cache.status().message();
  return std::move(cache).value();
}

void Load(ExpertCache& cache, uint32_t expert) {
  ASSERT_TRUE(cache.Reserve(expert));
  std::memset(cache.slot(expert), static_cast<int>(expert), kSmall);
  cache.Publish(expert, 1);
  cache.Unpin(expert);
}

TEST(ExpertTableTest, NumbersExpertsLayerAfterLayer) {
  const ExpertTable table = MixedTable();
  EXPECT_EQ(table.num_experts(), 10u);
  EXPECT_EQ(table.Number({.layer = 1, .index = 2}), 6u);
  EXPECT_EQ(table.IdOf(9), (routing::ExpertId{.layer = 3, .index = 1}));
  EXPECT_EQ(table.SizeBytes(8), kLarge);
  EXPECT_EQ(table.total_bytes(), 8 * kSmall + 2 * kLarge);
  EXPECT_EQ(table.token_bytes(), 4 * kSmall + kLarge);
}

TEST(ExpertCacheTest, LeastRecentlyUsedMakesRoom) {
  const ExpertTable table = FlatTable();
  auto cache = MakeCache(table, 3 * kSmall);
  for (const uint32_t expert : {0, 1, 2}) Load(*cache, expert);
  ASSERT_TRUE(cache->Pin(0, 1));
  cache->Unpin(0);
  Load(*cache, 3);
  EXPECT_EQ(cache->state(1), ExpertCache::State::kAbsent);
  EXPECT_EQ(cache->state(0), ExpertCache::State::kResident);
  EXPECT_EQ(cache->num_evictions(), 1u);
  EXPECT_EQ(cache->resident_bytes(), 3 * kSmall);
}

TEST(ExpertCacheTest, PinnedAndLoadingExpertsKeepTheirSlots) {
  const ExpertTable table = FlatTable();
  auto cache = MakeCache(table, 2 * kSmall);
  Load(*cache, 0);
  ASSERT_TRUE(cache->Pin(0, 1));
  ASSERT_TRUE(cache->Reserve(1));  // loading
  EXPECT_FALSE(cache->Reserve(2));
  EXPECT_EQ(cache->state(2), ExpertCache::State::kAbsent);
  EXPECT_EQ(cache->slot(0)[0], std::byte{0});
  cache->Unpin(0);
  EXPECT_TRUE(cache->Reserve(2));
  EXPECT_NE(cache->slot(1), cache->slot(2));
}

TEST(ExpertCacheTest, AbandonedSlotIsFreeAgain) {
  const ExpertTable table = FlatTable();
  auto cache = MakeCache(table, 2 * kSmall);
  Load(*cache, 0);
  ASSERT_TRUE(cache->Reserve(1));
  cache->Abandon(1);
  Load(*cache, 2);
  EXPECT_EQ(cache->num_evictions(), 0u);
  EXPECT_EQ(cache->num_resident(), 2u);
}

TEST(ExpertCacheTest, BelowTheFloorItSaysHowMuchIsNeeded) {
  const ExpertTable table = MixedTable();
  EXPECT_EQ(ExpertCache::FloorBytes(table), 2 * kSmall + kLarge);
  const auto cache =
      ExpertCache::Create(table, {.budget_bytes = 2 * kSmall + kLarge - 1});
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), Code::kResourceExhausted);
  EXPECT_NE(cache.status().message().find("28.00 KiB"), std::string::npos)
      << cache.status().message();
}

TEST(ExpertCacheTest, ExpertsOfEverySizeHaveTheirShareAndStayWithinTheBudget) {
  const ExpertTable table = MixedTable();
  for (uint64_t budget = ExpertCache::FloorBytes(table);
       budget < table.total_bytes() + kLarge; budget += kExpertAlignment) {
    auto cache = MakeCache(table, budget);
    EXPECT_LE(cache->capacity_bytes(), budget);
    EXPECT_GE(cache->CapacityOf(0), 2u);
    EXPECT_GE(cache->CapacityOf(9), 1u);
  }
  auto all = MakeCache(table, table.total_bytes());
  EXPECT_EQ(all->CapacityOf(0), 8u);
  EXPECT_EQ(all->CapacityOf(9), 2u);
}

TEST(ExpertCacheTest, ASmallerBudgetGivesExpertsUpAndALargerOneTakesMore) {
  const ExpertTable table = FlatTable();
  auto cache = MakeCache(table, 6 * kSmall);
  for (uint32_t expert = 0; expert < 6; ++expert) Load(*cache, expert);
  ASSERT_TRUE(cache->SetBudget(2 * kSmall).ok());
  EXPECT_EQ(cache->num_resident(), 2u);
  EXPECT_LE(cache->resident_bytes(), 2 * kSmall);
  for (uint32_t expert = 0; expert < 8; ++expert) {
    if (cache->state(expert) != ExpertCache::State::kResident) continue;
    EXPECT_EQ(cache->slot(expert)[kSmall - 1], static_cast<std::byte>(expert));
  }
  ASSERT_TRUE(cache->SetBudget(4 * kSmall).ok());
  for (const uint32_t expert : {6, 7}) Load(*cache, expert);
  EXPECT_EQ(cache->num_resident(), 4u);
  EXPECT_FALSE(cache->SetBudget(kSmall).ok());
  EXPECT_EQ(cache->num_resident(), 4u);
}

}  // namespace
}  // namespace muster::experts

// What the user wants of the hot tier beside its policy, and what it remembers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "experts/expert_cache.h"
#include "experts/expert_pool_rules.h"

namespace muster::experts {
namespace {

using testing::HasSubstr;
using State = ExpertCache::State;

constexpr size_t kBytes = kExpertAlignment;

// One layer of 8 experts of which a token takes 2.
ExpertTable FlatTable() {
  return ExpertTable(
      {{.num_experts = 8, .top_k = 2, .layout = {.size_bytes = kBytes}}});
}

class ExpertPoolTest : public testing::Test {
 protected:
  void Open(size_t num_slots, const PoolOptions& pool) {
    auto cache = ExpertCache::Create(
        table_,
        {.budget_bytes = num_slots * kBytes, .policy = "lru", .pool = pool});
    ASSERT_TRUE(cache.ok()) << cache.status().message();
    cache_ = std::move(cache).value();
  }
  // A turn in which so many tokens use the expert.
  void Use(uint32_t expert, uint32_t num_tokens = 1) {
    cache_->BeginLayer(0);
    if (!cache_->Pin(expert, num_tokens)) {
      ASSERT_TRUE(cache_->Reserve(expert));
      cache_->Publish(expert, num_tokens);
    }
    cache_->EvictIdle();
    cache_->Unpin(expert);
  }
  void PassTurns(uint64_t num_turns) {
    for (uint64_t i = 0; i < num_turns; ++i) cache_->BeginLayer(0);
  }
  bool IsResident(uint32_t expert) const {
    return cache_->state(expert) == State::kResident;
  }

  const ExpertTable table_ = FlatTable();
  std::unique_ptr<ExpertCache> cache_;
  double seconds_ = 0;
};

TEST_F(ExpertPoolTest, WithoutRulesNobodyIsATransient) {
  Open(2, {});
  for (const uint32_t expert : {0, 1, 2, 3}) {
    Use(expert);
    EXPECT_FALSE(cache_->IsTransient(expert));
  }
  EXPECT_EQ(cache_->num_transient_evictions(), 0u);
  EXPECT_EQ(cache_->num_evictions(), 2u);
}

TEST_F(ExpertPoolTest, ATransientGoesBeforeOneThatWasUsedEarlier) {
  Open(3, {.load_after = 2});
  Use(0), Use(0), Use(1), Use(1);  // have earned their place
  Use(2);
  EXPECT_TRUE(cache_->IsTransient(2));
  Use(3);
  EXPECT_TRUE(IsResident(0));
  EXPECT_TRUE(IsResident(1));
  EXPECT_FALSE(IsResident(2));
  EXPECT_EQ(cache_->num_transient_evictions(), 1u);
}

TEST_F(ExpertPoolTest, UsesAreCountedByTokens) {
  Open(3, {.load_after = 3});
  Use(0, 2);
  EXPECT_TRUE(cache_->IsTransient(0));
  Use(0);
  EXPECT_FALSE(cache_->IsTransient(0));
  Use(1, 3);
  EXPECT_FALSE(cache_->IsTransient(1));
}

TEST_F(ExpertPoolTest, ARowOfUsesOutlastsAShortAbsence) {
  Open(2, {.load_after = 2});
  Use(0), Use(1), Use(2);
  ASSERT_FALSE(IsResident(0));
  Use(0);
  EXPECT_FALSE(cache_->IsTransient(0));
}

TEST_F(ExpertPoolTest, ARowOfUsesBreaksInALongAbsence) {
  Open(2, {.load_after = 2});
  const uint64_t window = ExpertPoolRules({}, table_, 1).run_window_turns();
  EXPECT_EQ(window, 8u);
  Use(0), Use(1), Use(2);
  ASSERT_FALSE(IsResident(0));
  PassTurns(window);
  Use(0);
  EXPECT_TRUE(cache_->IsTransient(0));
}

TEST_F(ExpertPoolTest, WhoStaysKeepsItsRowHoweverLongItWaits) {
  Open(2, {.load_after = 2});
  Use(0);
  PassTurns(1000);
  Use(0);
  EXPECT_FALSE(cache_->IsTransient(0));
}

TEST_F(ExpertPoolTest, AnExpertNeverKeptStaysATransient) {
  Open(3, {.never_kept = {2}});
  Use(0), Use(1);
  for (int i = 0; i < 10; ++i) Use(2);
  EXPECT_TRUE(cache_->IsTransient(2));
  EXPECT_FALSE(cache_->IsTransient(0));
  Use(3);
  EXPECT_FALSE(IsResident(2));
  EXPECT_TRUE(IsResident(0));
}

TEST_F(ExpertPoolTest, PinsOfATurnHoldATransientToo) {
  Open(2, {.load_after = 9});
  cache_->BeginLayer(0);
  for (const uint32_t expert : {0, 1}) {
    ASSERT_TRUE(cache_->Reserve(expert));
    cache_->Publish(expert, 1);
  }
  EXPECT_FALSE(cache_->Reserve(2));
  cache_->Unpin(1);
  EXPECT_TRUE(cache_->Reserve(2));
  EXPECT_TRUE(IsResident(0));
}

TEST_F(ExpertPoolTest, IdleExpertsGoWhenTheirTimeHasCome) {
  Open(4, {.unload_idle_seconds = 10, .now_seconds = [&] { return seconds_; }});
  cache_->EvictIdle();
  Use(0), Use(1);
  seconds_ = 6;
  cache_->EvictIdle();
  Use(1);
  seconds_ = 10;
  cache_->EvictIdle();
  EXPECT_FALSE(IsResident(0));
  EXPECT_TRUE(IsResident(1));
  EXPECT_EQ(cache_->num_idle_evictions(), 1u);
  EXPECT_EQ(cache_->resident_bytes(), kBytes);
  seconds_ = 100;
  Use(1);  // held by the turn that ends its wait
  EXPECT_TRUE(IsResident(1));
}

TEST_F(ExpertPoolTest, PinnedExpertsAreNeverEvictedNorIdle) {
  Open(3, {.unload_idle_seconds = 10, .pinned = {7}, .now_seconds = [&] {
             return seconds_;
           }});
  Use(7);
  for (const uint32_t expert : {0, 1, 2, 3, 4}) Use(expert);
  seconds_ = 1000;
  cache_->EvictIdle();
  EXPECT_TRUE(IsResident(7));
  EXPECT_EQ(cache_->num_resident(), 1u);
}

TEST_F(ExpertPoolTest, PinnedExpertsNeedRoomBesideTheFloor) {
  const PoolOptions pool = {.pinned = {5, 6, 7}};
  Open(5, pool);
  const auto cache =
      ExpertCache::Create(table_, {.budget_bytes = 4 * kBytes, .pool = pool});
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(cache.status().message(), HasSubstr("beside the pinned ones'"));
}

TEST_F(ExpertPoolTest, WhereMostArePinnedTheFloorIsWhatIsLeft) {
  Open(8, {.pinned = {0, 1, 2, 3, 4, 5, 6}});
  Open(8, {.pinned = {0, 1, 2, 3, 4, 5, 6, 7}});
}

TEST_F(ExpertPoolTest, NoExpertIsPinnedAndNeverKept) {
  const auto cache = ExpertCache::Create(
      table_,
      {.budget_bytes = 8 * kBytes, .pool = {.pinned = {1}, .never_kept = {1}}});
  ASSERT_FALSE(cache.ok());
  EXPECT_EQ(cache.status().code(), Code::kInvalidArgument);
}

TEST_F(ExpertPoolTest, ResidencyTellsLifetimesWaitsAndGaps) {
  Open(2, {});
  Use(0);        // turn 1
  PassTurns(3);  // to 4
  Use(0);        // 5: a gap of 4
  Use(1);        // 6
  PassTurns(6);  // to 12
  Use(2);        // 13: expert 0 goes, 12 old and idle for 8
  const auto& histograms = cache_->residency().histograms();
  EXPECT_EQ(histograms.reuse_gap.count(), 1u);
  EXPECT_EQ(histograms.reuse_gap.Quantile(1), 7u);
  EXPECT_EQ(histograms.lifetime.count(), 1u);
  EXPECT_EQ(histograms.lifetime.Quantile(1), 15u);
  EXPECT_EQ(histograms.idle.bucket(4), 1u);
  EXPECT_EQ(cache_->residency().num_dormant(), 5u);
  EXPECT_EQ(cache_->residency().uses()[0], 2u);
}

TEST_F(ExpertPoolTest, PrimingOrdersEvictionsButIsNoUse) {
  Open(3, {.load_after = 2});
  for (const uint32_t expert : {0, 1, 2}) {
    ASSERT_TRUE(cache_->Reserve(expert));
    cache_->Publish(expert, 0);
    cache_->Unpin(expert);
  }
  for (const uint32_t expert : {2, 1, 0}) cache_->Prime(expert, 2);
  EXPECT_FALSE(cache_->IsTransient(0));
  EXPECT_EQ(cache_->residency().num_dormant(), 8u);
  Use(3);
  EXPECT_FALSE(IsResident(2));
  EXPECT_TRUE(IsResident(0));
}

}  // namespace
}  // namespace muster::experts

// Low-bit copies in the tiers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "experts/expert_tiers.h"
#include "experts/fake_fetcher.h"

namespace muster::experts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CopiesTest : public testing::Test {
 protected:
  // Copies have two slots of their own.
  void Open(size_t num_slots) {
    auto tiers = ExpertTiers::Create(
        TwoLayers(), std::make_unique<FakeFetcher>(&script_),
        {.budget_bytes = (num_slots + 2) * kBytes}, TwoLayers());
    ASSERT_TRUE(tiers.ok()) << tiers.status().message();
    tiers_ = std::move(tiers).value();
  }
  // Runs a turn in which any may be a copy; returns, by position, the numbers
  // that the slots were filled with, less 1: 12 and above are copies.
  std::vector<uint32_t> CopyTurn(uint32_t layer,
                                 const std::vector<uint32_t>& ids,
                                 const std::vector<uint8_t>& may_be_copies) {
    tiers_->Begin(layer, ids, std::vector<uint32_t>(ids.size(), 1),
                  may_be_copies);
    std::vector<uint32_t> entries(ids.size());
    while (true) {
      const auto positions = tiers_->Next(pool_);
      EXPECT_TRUE(positions.ok()) << positions.status().message();
      if (!positions.ok() || positions->empty()) return entries;
      for (const uint32_t position : *positions) {
        const std::byte filled =
            *tiers_->Weights(layer, ids[position]).gate.data;
        entries[position] = std::to_integer<uint32_t>(filled) - 1;
      }
    }
  }
  void Begin(uint32_t layer, const std::vector<uint32_t>& ids) {
    tiers_->Begin(layer, ids, std::vector<uint32_t>(ids.size(), 1));
  }
  Status Turn(uint32_t layer, const std::vector<uint32_t>& ids) {
    Begin(layer, ids);
    while (true) {
      ASSIGN_OR_RETURN(const auto positions, tiers_->Next(pool_));
      if (positions.empty()) return {};
    }
  }

  FakeFetcher::Script script_;
  ThreadPool pool_{1};
  std::unique_ptr<ExpertTiers> tiers_;
};

TEST_F(CopiesTest, ACopyTakesThePlaceOfAMissingExpertThatMayBeOne) {
  Open(4);
  EXPECT_EQ(tiers_->cache().budget_bytes(), 4 * kBytes);
  EXPECT_THAT(CopyTurn(1, {1, 3}, {0, 1}), ElementsAre(7, 12 + 9));
  EXPECT_EQ(tiers_->cache().state(9), ExpertCache::State::kAbsent);
  EXPECT_EQ(tiers_->counters().queries, 2u);
  EXPECT_EQ(tiers_->counters().hits, 0u);
  EXPECT_EQ(tiers_->counters().tail_experts, 1u);
  EXPECT_EQ(tiers_->counters().tail_bytes, kBytes);
  EXPECT_EQ(tiers_->counters().fetched_experts, 1u);
}

TEST_F(CopiesTest, AnExpertInMemoryWinsOverItsCopy) {
  Open(4);
  EXPECT_THAT(CopyTurn(0, {3}, {1}), ElementsAre(12 + 3));
  ASSERT_TRUE(Turn(0, {3}).ok());  // now both are there
  EXPECT_THAT(CopyTurn(0, {3}, {1}), ElementsAre(3));
  EXPECT_EQ(tiers_->counters().hits, 1u);
  EXPECT_EQ(tiers_->counters().tail_experts, 1u);
}

TEST_F(CopiesTest, AnExpertOnItsWayWinsOverItsCopy) {
  Open(4);
  Begin(0, {3});
  tiers_->End();
  EXPECT_THAT(CopyTurn(0, {3}, {1}), ElementsAre(3));
  EXPECT_EQ(tiers_->counters().joined, 1u);
  EXPECT_EQ(tiers_->counters().tail_experts, 0u);
}

TEST_F(CopiesTest, ACopyInMemoryIsNotReadAgain) {
  Open(4);
  CopyTurn(0, {3}, {1});
  tiers_->Begin(0, std::vector<uint32_t>{3}, std::vector<uint32_t>{1},
                std::vector<uint8_t>{1});
  EXPECT_TRUE(tiers_->AllInMemory());
  EXPECT_EQ(script_.num_starts, 1u);
  EXPECT_EQ(tiers_->counters().tail_experts, 2u);
  EXPECT_EQ(tiers_->counters().tail_bytes, kBytes);
  EXPECT_EQ(tiers_->counters().hits, 0u);
}

TEST_F(CopiesTest, CopiesAreNeverUsedUnlessTheTurnAllowsThem) {
  Open(4);
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_TRUE(Turn(0, {0, 1}).ok());
    ASSERT_TRUE(Turn(1, {2, 3}).ok());
    CopyTurn(1, {4, 5}, {1, 1});
  }
  EXPECT_EQ(tiers_->counters().tail_experts, 6u);
}

TEST_F(CopiesTest, MoreCopiesThanSlotsComeOneAfterTheOther) {
  Open(2);
  script_.last_first = true;
  EXPECT_THAT(CopyTurn(0, {0, 1, 2, 3, 4}, {1, 0, 1, 1, 1}),
              ElementsAre(12, 1, 14, 15, 16));
}

TEST_F(CopiesTest, ACopyThatCannotBeHadIsNamed) {
  Open(4);
  script_.failures[12 + 9] = 3;
  tiers_->Begin(1, std::vector<uint32_t>{3}, std::vector<uint32_t>{1},
                std::vector<uint8_t>{1});
  EXPECT_THAT(tiers_->Next(pool_).status().message(),
              HasSubstr("the low-bit copy of expert 3 of layer 1"));
  EXPECT_THAT(CopyTurn(1, {3}, {1}), ElementsAre(12 + 9));
}

TEST_F(CopiesTest, ACopyOfATurnThatEndedStaysForTheNext) {
  Open(4);
  tiers_->Begin(0, std::vector<uint32_t>{2}, std::vector<uint32_t>{1},
                std::vector<uint8_t>{1});
  ASSERT_TRUE(Turn(1, {5}).ok());  // it lands meanwhile
  EXPECT_THAT(CopyTurn(0, {2}, {1}), ElementsAre(14));
  EXPECT_EQ(script_.num_starts, 2u);
  ASSERT_TRUE(tiers_->SetBudget(4 * kBytes, pool_).ok());
  EXPECT_EQ(tiers_->cache().budget_bytes(), 2 * kBytes);
}

}  // namespace
}  // namespace muster::experts

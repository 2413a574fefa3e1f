#include "experts/expert_tiers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "experts/fake_fetcher.h"

namespace muster::experts {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

std::vector<routing::ExpertId> InLayer(uint32_t layer,
                                       const std::vector<uint32_t>& ids) {
  std::vector<routing::ExpertId> experts;
  for (const uint32_t id : ids) experts.push_back({layer, id});
  return experts;
}

class ExpertTiersTest : public testing::Test {
 protected:
  void Open(size_t num_slots, const PoolOptions& pool = {}) {
    auto tiers = ExpertTiers::Create(
        TwoLayers(), std::make_unique<FakeFetcher>(&script_),
        {.budget_bytes = num_slots * kBytes, .pool = pool});
    ASSERT_TRUE(tiers.ok()) << tiers.status().message();
    tiers_ = std::move(tiers).value();
  }
  // Runs a turn; each expert handed out must hold its own bytes.
  void Begin(uint32_t layer, const std::vector<uint32_t>& ids) {
    tiers_->Begin(layer, ids, std::vector<uint32_t>(ids.size(), 1));
  }
  Status Turn(uint32_t layer, const std::vector<uint32_t>& ids) {
    Begin(layer, ids);
    std::vector<uint32_t> seen;
    while (true) {
      ASSIGN_OR_RETURN(const auto positions, tiers_->Next(pool_));
      if (positions.empty()) break;
      for (const uint32_t position : positions) {
        const uint32_t expert = tiers_->table().Number({layer, ids[position]});
        EXPECT_EQ(*tiers_->Weights(layer, ids[position]).gate.data,
                  static_cast<std::byte>(expert + 1));
        seen.push_back(position);
      }
    }
    std::sort(seen.begin(), seen.end());
    EXPECT_EQ(seen.size(), ids.size());
    EXPECT_EQ(std::unique(seen.begin(), seen.end()), seen.end());
    return {};
  }

  // Hands out all of the turn, and lets what is under way land.
  void Settle() {
    while (!tiers_->Next(pool_)->empty()) {
    }
    script_.lands_unasked = true;
    while (tiers_->fetcher().num_in_flight() > 0) tiers_->Pump(pool_);
    script_.lands_unasked = false;
  }

  FakeFetcher::Script script_;
  ThreadPool pool_{1};
  std::unique_ptr<ExpertTiers> tiers_;
};

TEST_F(ExpertTiersTest, MissesAreFetchedOnceAndHitAfterwards) {
  Open(4);
  ASSERT_TRUE(Turn(0, {1, 3}).ok());
  ASSERT_TRUE(Turn(0, {1, 3}).ok());
  EXPECT_EQ(tiers_->counters().queries, 4u);
  EXPECT_EQ(tiers_->counters().hits, 2u);
  EXPECT_EQ(script_.num_starts, 2u);
}

TEST_F(ExpertTiersTest, HandsOutWhatIsThereBeforeItWaits) {
  Open(4);
  ASSERT_TRUE(Turn(0, {3}).ok());
  Begin(0, std::vector<uint32_t>{1, 3});
  EXPECT_TRUE(tiers_->AnyInMemory());
  EXPECT_FALSE(tiers_->AllInMemory());
  EXPECT_THAT(*tiers_->Next(pool_), ElementsAre(1));
  EXPECT_THAT(*tiers_->Next(pool_), ElementsAre(0));
  EXPECT_THAT(*tiers_->Next(pool_), IsEmpty());
}

TEST_F(ExpertTiersTest, AStepMayNeedMoreExpertsThanFit) {
  Open(2);
  ASSERT_TRUE(Turn(0, {0, 1, 2, 3, 4, 5}).ok());
  ASSERT_TRUE(Turn(1, {0, 1, 2, 3, 4, 5}).ok());
  EXPECT_EQ(tiers_->cache().num_resident(), 2u);
}

TEST_F(ExpertTiersTest, ItFillsBehindOtherReadsUntilAllAreThere) {
  Open(12);
  tiers_->FillBehind();
  ASSERT_TRUE(Turn(1, {2, 5}).ok());
  EXPECT_TRUE(tiers_->IsInMemory(1, 2));
  for (int i = 0; i < 4; ++i) {
    tiers_->Preload({}, pool_, nullptr);  // waits for what is in flight
    tiers_->Pump(pool_);                  // starts what is next
  }
  for (uint32_t expert = 0; expert < 12; ++expert) {
    EXPECT_TRUE(tiers_->IsInMemory(expert / 6, expert % 6)) << expert;
  }
  EXPECT_EQ(script_.num_starts, 12u);
  EXPECT_EQ(tiers_->counters().evictions, 0u);
}

TEST_F(ExpertTiersTest, FillingEvictsNobodyAndLeavesAsideWhatCannotBeRead) {
  Open(4);
  script_.failures[0] = 1;
  tiers_->FillBehind();
  ASSERT_TRUE(Turn(1, {2, 5}).ok());
  ASSERT_TRUE(Turn(1, {2, 5}).ok());
  EXPECT_EQ(tiers_->counters().hits, 2u);
  EXPECT_EQ(tiers_->counters().evictions, 0u);
  ASSERT_TRUE(Turn(0, {0}).ok());
}

TEST_F(ExpertTiersTest, RandomTurnsAlwaysGetTheRightBytes) {
  for (const size_t num_slots : {2, 3, 5, 12}) {
    for (const bool last_first : {false, true}) {
      script_ = {.max_in_flight = 3, .last_first = last_first};
      Open(num_slots);
      std::mt19937 random(7);
      for (int turn = 0; turn < 200; ++turn) {
        std::vector<uint32_t> ids;
        for (uint32_t id = 0; id < 6; ++id) {
          if (random() % 2 == 0) ids.push_back(id);
        }
        ASSERT_TRUE(Turn(turn % 2, ids).ok());
      }
    }
  }
}

TEST_F(ExpertTiersTest, AFailedReadIsTriedAgain) {
  Open(4);
  script_.failures[2] = 2;
  ASSERT_TRUE(Turn(0, {2}).ok());
  EXPECT_EQ(tiers_->counters().failed_reads, 2u);
  EXPECT_EQ(tiers_->counters().checksum_failures, 2u);
}

TEST_F(ExpertTiersTest, AnExpertThatCannotBeHadFailsItsStepAloneAndIsNamed) {
  Open(4);
  script_.failures[tiers_->table().Number({1, 2})] = 3;
  const Status status = Turn(1, {0, 2, 4});
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("expert 2 of layer 1"));
  EXPECT_THAT(status.message(), HasSubstr("wrong checksum"));
  // The next step may have better luck, and others are not harmed.
  ASSERT_TRUE(Turn(1, {0, 2, 4}).ok());
  ASSERT_TRUE(Turn(0, {0, 1, 2, 3, 4, 5}).ok());
}

TEST_F(ExpertTiersTest, AReadThatAnEarlierStepLeftBehindIsJoined) {
  Open(6);
  Begin(0, std::vector<uint32_t>{0, 1});  // and nobody takes them
  ASSERT_TRUE(Turn(0, {1}).ok());
  EXPECT_EQ(tiers_->counters().joined, 1u);
  EXPECT_EQ(script_.num_starts, 2u);
}

TEST_F(ExpertTiersTest, AStepThatJoinsAReadHasTriesOfItsOwn) {
  Open(4);
  script_.failures = {{0, 3}, {1, 3}};
  EXPECT_EQ(Turn(0, {0, 1}).code(), Code::kCorrupt);
  ASSERT_TRUE(Turn(0, {1}).ok());  // its third read was under way, and failed
  EXPECT_EQ(tiers_->counters().joined, 1u);
}

TEST_F(ExpertTiersTest, GuessesAreReadBehindWhatIsNeeded) {
  script_.max_in_flight = 2;
  Open(12);
  Begin(0, std::vector<uint32_t>{0, 1, 2});
  tiers_->Guess(InLayer(1, {5, 4, 3, 2}), {});
  size_t given = 0;
  while (given < 3) given += tiers_->Next(pool_)->size();
  // Two places were left, one after the other.
  EXPECT_EQ(tiers_->counters().guessed_experts, 2u);
  tiers_->Pump(pool_);
  ASSERT_TRUE(Turn(1, {1, 5}).ok());
  EXPECT_EQ(tiers_->counters().good_guesses, 1u);
  // Begin has dropped the others.
  EXPECT_EQ(script_.num_starts, 6u);
}

TEST_F(ExpertTiersTest, GuessesTakeAtMostAQuarterOfTheCache) {
  script_.max_in_flight = 12;
  Open(8);
  Begin(0, std::vector<uint32_t>{0});
  tiers_->Guess(InLayer(1, {0, 1, 2, 3, 4, 5}), {});
  while (!tiers_->Next(pool_)->empty()) {
  }
  tiers_->Pump(pool_);
  EXPECT_EQ(tiers_->counters().guessed_experts, 2u);
}

TEST_F(ExpertTiersTest, AGuessStaysUntilItsTurnThoughNobodyHasUsedItYet) {
  script_.max_in_flight = 1;  // so that the first is there before the second
  Open(8);
  ASSERT_TRUE(Turn(0, {0, 1, 2, 3, 4, 5}).ok());
  ASSERT_TRUE(Turn(1, {0, 1}).ok());
  Begin(0, std::vector<uint32_t>{0});
  tiers_->Guess(InLayer(1, {3, 4}), {});
  Settle();
  Begin(1, std::vector<uint32_t>{3, 4});
  EXPECT_TRUE(tiers_->AllInMemory());
  EXPECT_EQ(tiers_->counters().good_guesses, 2u);
  EXPECT_EQ(tiers_->counters().good_guess_bytes, 2 * kBytes);
}

TEST_F(ExpertTiersTest, AGuessWhoseTurnHasPassedIsTheFirstToGo) {
  Open(8);
  ASSERT_TRUE(Turn(1, {0, 1, 2, 3}).ok());
  ASSERT_TRUE(Turn(0, {0, 1, 2}).ok());
  tiers_->Guess(InLayer(1, {5}), {});
  Settle();
  ASSERT_TRUE(Turn(1, {0}).ok());  // it was wrong
  ASSERT_TRUE(Turn(0, {3}).ok());
  EXPECT_EQ(tiers_->cache().state(tiers_->table().Number({1, 5})),
            ExpertCache::State::kAbsent);
  EXPECT_EQ(tiers_->counters().good_guesses, 0u);
  EXPECT_EQ(tiers_->counters().guessed_bytes, kBytes);
}

TEST_F(ExpertTiersTest, WhatATurnNeedsTakesTheRoomOfGuesses) {
  Open(4);
  Begin(0, std::vector<uint32_t>{0});
  tiers_->Guess(InLayer(1, {0}), {});
  Settle();
  ASSERT_EQ(tiers_->cache().state(6), ExpertCache::State::kResident);
  Begin(0, std::vector<uint32_t>{2, 3, 4, 5});
  EXPECT_EQ(tiers_->cache().state(6), ExpertCache::State::kAbsent);
  EXPECT_EQ(script_.num_starts, 6u);  // all four at once
  ASSERT_TRUE(Turn(0, {2, 3, 4, 5}).ok());
}

TEST_F(ExpertTiersTest, AGuessUnderWayCanBeWhatTheTurnWaitsFor) {
  Open(8);
  script_.failures[6] = 1;
  Begin(0, std::vector<uint32_t>{0});
  tiers_->Guess(InLayer(1, {0, 1}), {});
  ASSERT_TRUE(Turn(1, {0, 1, 2}).ok());
  EXPECT_EQ(tiers_->counters().joined, 2u);
  EXPECT_EQ(tiers_->counters().failed_reads, 1u);
  ASSERT_TRUE(tiers_->SetBudget(2 * kBytes, pool_).ok());
}

TEST_F(ExpertTiersTest, GuessesWaitWhileTheDiskIsBusy) {
  script_.max_in_flight = 8;
  Open(12);
  Begin(0, std::vector<uint32_t>{0, 1, 2});
  tiers_->Guess(InLayer(1, {0, 1, 2}), {.most_in_flight = 4});
  EXPECT_EQ(tiers_->counters().guessed_experts, 1u);
}

TEST_F(ExpertTiersTest, GuessesEvictNothingThatWasJustUsed) {
  Open(8);
  ASSERT_TRUE(Turn(1, {0, 1}).ok());
  ASSERT_TRUE(Turn(0, {0, 1, 2, 3, 4, 5}).ok());
  tiers_->Guess(InLayer(1, {2}), {.spare_turns = 2});
  EXPECT_EQ(tiers_->counters().guessed_experts, 0u);
  tiers_->Guess(InLayer(1, {2}), {.spare_turns = 1});
  EXPECT_EQ(tiers_->counters().guessed_experts, 1u);
}

TEST_F(ExpertTiersTest, AGuessThatFailsHarmsNobody) {
  Open(8);
  script_.failures[tiers_->table().Number({1, 0})] = 1;
  Begin(0, std::vector<uint32_t>{0});
  tiers_->Guess(InLayer(1, {0}), {});
  while (!tiers_->Next(pool_)->empty()) {
  }
  ASSERT_TRUE(Turn(0, {1, 2}).ok());
  ASSERT_TRUE(Turn(1, {0}).ok());
  EXPECT_EQ(tiers_->counters().good_guesses, 0u);
}

TEST_F(ExpertTiersTest, TheBudgetCanChangeBetweenSteps) {
  Open(8);
  ASSERT_TRUE(Turn(0, {0, 1, 2, 3, 4, 5}).ok());
  ASSERT_TRUE(tiers_->SetBudget(2 * kBytes, pool_).ok());
  EXPECT_EQ(tiers_->cache().num_resident(), 2u);
  ASSERT_TRUE(Turn(0, {0, 1, 2, 3, 4, 5}).ok());
  ASSERT_TRUE(tiers_->SetBudget(12 * kBytes, pool_).ok());
  ASSERT_TRUE(Turn(0, {0, 1, 2, 3, 4, 5}).ok());
  ASSERT_TRUE(Turn(0, {0, 1, 2, 3, 4, 5}).ok());
  EXPECT_EQ(tiers_->cache().num_resident(), 6u);
}

TEST_F(ExpertTiersTest, RulesOfThePoolNeverGiveTheWrongBytes) {
  double seconds = 0;
  for (const size_t num_slots : {4, 6, 12}) {
    script_ = {.max_in_flight = 3, .last_first = true};
    Open(num_slots, {.load_after = 3,
                     .unload_idle_seconds = 5,
                     .pinned = {1, 8},
                     .never_kept = {0, 9},
                     .now_seconds = [&] { return seconds; }});
    ASSERT_TRUE(tiers_->LoadPinned(pool_).ok());
    std::mt19937 random(11);
    for (int turn = 0; turn < 200; ++turn) {
      seconds += static_cast<double>(random() % 3);
      std::vector<uint32_t> ids;
      for (uint32_t id = 0; id < 6; ++id) {
        if (random() % 3 == 0) ids.push_back(id);
      }
      ASSERT_TRUE(Turn(turn % 2, ids).ok());
      tiers_->Pump(pool_);
    }
    if (num_slots < 12) {
      EXPECT_GT(tiers_->counters().transient_evictions, 0u);
    }
    EXPECT_GT(tiers_->counters().idle_evictions, 0u);
    EXPECT_EQ(tiers_->cache().state(8), ExpertCache::State::kResident);
  }
}

TEST_F(ExpertTiersTest, APinnedExpertIsThereFromTheStartAndAfterAnyBudget) {
  Open(8, {.pinned = {3, 11}});
  ASSERT_TRUE(tiers_->LoadPinned(pool_).ok());
  ASSERT_TRUE(Turn(0, {3}).ok());
  EXPECT_EQ(tiers_->counters().hits, 1u);
  ASSERT_TRUE(Turn(0, {0, 1, 2, 3, 4, 5}).ok());
  EXPECT_FALSE(tiers_->SetBudget(3 * kBytes, pool_).ok());
  ASSERT_TRUE(tiers_->SetBudget(4 * kBytes, pool_).ok());
  for (const uint32_t expert : {3, 11}) {
    EXPECT_EQ(tiers_->cache().state(expert), ExpertCache::State::kResident);
  }
}

TEST_F(ExpertTiersTest, APinnedExpertIsTriedAgainAndNamedWhenItCannotBeHad) {
  Open(8, {.pinned = {8}});
  script_.failures[8] = 2;
  ASSERT_TRUE(tiers_->LoadPinned(pool_).ok());
  Open(8, {.pinned = {8}});
  script_.failures[8] = 4;
  const Status status = tiers_->LoadPinned(pool_);
  EXPECT_EQ(status.code(), Code::kCorrupt);
  EXPECT_THAT(status.message(), HasSubstr("expert 2 of layer 1"));
}

TEST_F(ExpertTiersTest, PreloadedExpertsAreHitsThatNobodyAskedFor) {
  script_.max_in_flight = 2;
  Open(6);
  std::atomic<uint64_t> done_bytes{0};
  script_.failures[2] = 1;
  tiers_->Preload(std::vector<uint32_t>{4, 2, 0, 7, 4}, pool_, &done_bytes);
  EXPECT_EQ(done_bytes, 4 * kBytes);
  EXPECT_EQ(tiers_->cache().num_resident(), 3u);
  EXPECT_EQ(tiers_->counters().queries, 0u);
  ASSERT_TRUE(Turn(0, {0, 4}).ok());
  EXPECT_EQ(tiers_->counters().hits, 2u);
}

}  // namespace
}  // namespace muster::experts

#include "experts/slot_populator.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

namespace muster::experts {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSlot = 4 * kPage;

bool IsMade(SlotArena& arena, size_t slot) {
  unsigned char pages[kSlot / kPage] = {};
  EXPECT_EQ(mincore(arena.slot(slot), kSlot, pages), 0);
  return std::all_of(std::begin(pages), std::end(pages),
                     [](unsigned char page) { return (page & 1) != 0; });
}

class SlotPopulatorTest : public testing::Test {
 protected:
  void SetUp() override {
    SlotArena arena(kSlot, 1);
    if (!arena.Populate(0)) GTEST_SKIP() << "not on this system";
  }
};

TEST_F(SlotPopulatorTest, SlotsAreMadeBeforeTheyAreTaken) {
  SlotArena arena(kSlot, 64);
  EXPECT_FALSE(IsMade(arena, 0));
  SlotPopulator populator({{.arena = &arena, .num_slots = 40}});
  populator.WaitUntilIdle();
  for (size_t slot = 0; slot < 40; ++slot) EXPECT_TRUE(IsMade(arena, slot));
}

TEST_F(SlotPopulatorTest, NeverMoreThanAreToBeTaken) {
  constexpr size_t kHuge = size_t{2} << 20;  // what the system rounds up to
  SlotArena arena(kHuge, 8);
  SlotPopulator populator({{.arena = &arena, .num_slots = 3}});
  populator.WaitUntilIdle();
  unsigned char page = 1;
  ASSERT_EQ(mincore(arena.slot(3), kPage, &page), 0);
  EXPECT_EQ(page & 1, 0);
}

TEST_F(SlotPopulatorTest, NoFurtherAheadThanItMay) {
  constexpr size_t kLarge = SlotPopulator::kAheadBytes / 4;
  SlotArena arena(kLarge, 16);
  const auto is_made = [&](size_t slot) {
    unsigned char page = 0;
    EXPECT_EQ(mincore(arena.slot(slot) + kLarge - kPage, kPage, &page), 0);
    return (page & 1) != 0;
  };
  SlotPopulator populator({{.arena = &arena, .num_slots = 16}});
  populator.WaitUntilIdle();
  EXPECT_TRUE(is_made(3));
  EXPECT_FALSE(is_made(4));
  populator.Take(0, 0);
  populator.WaitUntilIdle();
  EXPECT_TRUE(is_made(4));
  EXPECT_FALSE(is_made(5));
}

TEST_F(SlotPopulatorTest, WhatIsWrittenMeanwhileStays) {
  SlotArena arena(kSlot, 256);
  for (int round = 0; round < 20; ++round) {
    arena.Discard(0);
    SlotPopulator populator({{.arena = &arena, .num_slots = 256}});
    for (size_t slot = 0; slot < 256; ++slot) {
      populator.Take(0, slot);
      std::memset(arena.slot(slot), static_cast<int>(slot), kSlot);
    }
    populator.WaitUntilIdle();
    for (size_t slot = 0; slot < 256; ++slot) {
      const std::byte* begin = arena.slot(slot);
      ASSERT_EQ(std::count(begin, begin + kSlot, static_cast<std::byte>(slot)),
                static_cast<ptrdiff_t>(kSlot));
    }
  }
}

TEST_F(SlotPopulatorTest, EachSizeGetsItsShare) {
  SlotArena small(kSlot, 8), large(2 * kSlot, 8);
  SlotPopulator populator(
      {{.arena = &small, .num_slots = 8}, {.arena = &large, .num_slots = 8}});
  populator.WaitUntilIdle();
  EXPECT_TRUE(IsMade(small, 7));
  EXPECT_TRUE(IsMade(large, 7));
}

}  // namespace
}  // namespace muster::experts

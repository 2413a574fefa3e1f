#include "io/faulty_read_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/memory_read_engine.h"
#include "io/testing_file.h"
#include "tensor/aligned_buffer.h"

namespace muster::io {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

constexpr size_t kPage = kReadAlignment;
constexpr int kFd = 4;
constexpr size_t kNumPages = 8;

// Reads pages of a file of kNumPages, each to the place of its number.
class FaultyReadEngineTest : public ::testing::Test {
 protected:
  void Open(FaultyOptions options) {
    engine_ = std::make_unique<FaultyReadEngine>(
        std::make_unique<MemoryReadEngine>(
            std::map<int, std::vector<std::byte>>{{kFd, bytes_}}),
        std::move(options));
  }
  void Start(size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) {
      const ReadRequest request{
          .fd = kFd, .offset = i * kPage, .dst = Page(i), .tag = 100 + i};
      ASSERT_EQ(engine_->Submit({&request, 1}), 1u);
    }
  }
  std::vector<ReadDone> WaitForAll() {
    std::vector<ReadDone> done(engine_->num_in_flight());
    EXPECT_EQ(engine_->Wait(done.size(), done), done.size());
    return done;
  }
  std::vector<uint64_t> TagsOfAll() {
    std::vector<uint64_t> tags;
    for (const ReadDone& done : WaitForAll()) tags.push_back(done.tag);
    return tags;
  }
  std::span<std::byte> Page(size_t i) {
    return memory_.bytes().subspan(i * kPage, kPage);
  }
  size_t NumWrongBytes(size_t page) {
    size_t count = 0;
    for (size_t i = 0; i < kPage; ++i) {
      count += Page(page)[i] != bytes_[page * kPage + i];
    }
    return count;
  }

  std::vector<std::byte> bytes_ = RandomBytes(kNumPages * kPage, 1);
  AlignedBuffer memory_{kNumPages * kPage};
  std::unique_ptr<FaultyReadEngine> engine_;
};

TEST_F(FaultyReadEngineTest, WithoutFaultsNothingChanges) {
  Open({});
  Start(0, 3);
  EXPECT_THAT(TagsOfAll(), ElementsAre(100, 101, 102));
  EXPECT_EQ(NumWrongBytes(2), 0u);
  EXPECT_EQ(engine_->num_faults(), 0u);
}

TEST_F(FaultyReadEngineTest, TheNthReadFailsAndItsBytesAreGone) {
  Open({.faults = {{.nth = 1, .error = ENODEV}}});
  Start(0, 3);
  const auto done = WaitForAll();
  EXPECT_EQ(done[0].status, ReadStatus::kOk);
  EXPECT_EQ(done[1].status, ReadStatus::kFailed);
  EXPECT_EQ(done[1].error, ENODEV);
  EXPECT_EQ(done[2].status, ReadStatus::kOk);
  EXPECT_GT(NumWrongBytes(1), kPage / 2);
}

TEST_F(FaultyReadEngineTest, AFaultAtAnOffsetStrikesAsOftenAsAsked) {
  Open({.faults = {{.offset = 2 * kPage + 9, .num_times = 1}}});
  Start(1, 3);
  EXPECT_EQ(WaitForAll()[1].error, EIO);
  Start(2, 1);
  EXPECT_EQ(WaitForAll()[0].status, ReadStatus::kOk);
  EXPECT_EQ(engine_->num_faults(), 1u);
}

TEST_F(FaultyReadEngineTest, AShortReadKeepsItsFirstBytes) {
  Open({.faults = {{.kind = ReadFault::Kind::kShort, .keep_bytes = 10}}});
  Start(0, 1);
  const auto done = WaitForAll();
  EXPECT_EQ(done[0].status, ReadStatus::kShort);
  EXPECT_EQ(done[0].size_bytes, 10u);
  EXPECT_EQ(Page(0)[9], bytes_[9]);
  EXPECT_GT(NumWrongBytes(0), kPage / 2);
}

TEST_F(FaultyReadEngineTest, AFlippedByteIsTheOnlyOneThatIsWrong) {
  Open({.faults = {
            {.kind = ReadFault::Kind::kFlipByte, .fd = kFd, .flip_byte = 77}}});
  Start(3, 1);
  EXPECT_EQ(WaitForAll()[0].status, ReadStatus::kOk);
  EXPECT_EQ(NumWrongBytes(3), 1u);
  EXPECT_NE(Page(3)[77], bytes_[3 * kPage + 77]);
}

TEST_F(FaultyReadEngineTest, ReadsComeBackInTheOrderAskedFor) {
  Open({.order = DoneOrder::kReversed});
  Start(0, 4);
  EXPECT_THAT(TagsOfAll(), ElementsAre(103, 102, 101, 100));
}

TEST_F(FaultyReadEngineTest, ASeedShufflesTheSameWayAlways) {
  Open({.order = DoneOrder::kShuffled, .seed = 9});
  Start(0, 8);
  const auto tags = TagsOfAll();
  EXPECT_THAT(tags,
              UnorderedElementsAre(100, 101, 102, 103, 104, 105, 106, 107));
  EXPECT_FALSE(std::ranges::is_sorted(tags));
  Open({.order = DoneOrder::kShuffled, .seed = 9});
  Start(0, 8);
  EXPECT_EQ(TagsOfAll(), tags);
}

TEST_F(FaultyReadEngineTest, ALazyEngineReturnsNothingBeforeOneWaits) {
  Open({.lazy = true});
  Start(0, 3);
  std::vector<ReadDone> done(3);
  EXPECT_EQ(engine_->Wait(0, done), 0u);
  EXPECT_EQ(engine_->Wait(2, done), 2u);
  EXPECT_EQ(engine_->num_in_flight(), 1u);
}

TEST_F(FaultyReadEngineTest, AFileThatIsNotThereFailsInMemoryToo) {
  MemoryReadEngine memory({});
  const ReadRequest request{.fd = kFd, .offset = 0, .dst = Page(0)};
  ASSERT_EQ(memory.Submit({&request, 1}), 1u);
  ReadDone done;
  ASSERT_EQ(memory.Wait(1, {&done, 1}), 1u);
  EXPECT_EQ(done.error, EBADF);
}

}  // namespace
}  // namespace muster::io

#include "io/read_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "tensor/aligned_buffer.h"

namespace muster::io {
namespace {

constexpr size_t kPage = kReadAlignment;

class ReadPiecesTest : public ::testing::Test {
 protected:
  ReadRequest Request(size_t num_pages, uint64_t tag = 7) {
    return {.fd = 3,
            .offset = 16 * kPage,
            .dst = memory_.bytes().first(num_pages * kPage),
            .tag = tag};
  }
  static ReadDone TakeOne(ReadPieces& pieces) {
    ReadDone done;
    EXPECT_EQ(pieces.TakeDone({&done, 1}), 1u);
    return done;
  }
  AlignedBuffer memory_{8 * kPage};
};

TEST_F(ReadPiecesTest, ALargeRequestIsCutAndEndsOnce) {
  ReadPieces pieces({.split_bytes = 2 * kPage});
  ASSERT_TRUE(pieces.Add(Request(5)));
  std::vector<uint32_t> started;
  while (const auto piece = pieces.Start()) started.push_back(*piece);
  ASSERT_EQ(started.size(), 3u);
  EXPECT_EQ(pieces.Rest(started[1]).offset, 18 * kPage);
  EXPECT_EQ(pieces.Rest(started[1]).dst.data(), memory_.data() + 2 * kPage);
  EXPECT_EQ(pieces.Rest(started[2]).dst.size(), kPage);
  EXPECT_FALSE(pieces.Ended(started[2], kPage));
  EXPECT_FALSE(pieces.Ended(started[0], 2 * kPage));
  EXPECT_EQ(pieces.num_done(), 0u);
  EXPECT_FALSE(pieces.Ended(started[1], 2 * kPage));
  const ReadDone done = TakeOne(pieces);
  EXPECT_EQ(done.status, ReadStatus::kOk);
  EXPECT_EQ(done.size_bytes, 5 * kPage);
  EXPECT_EQ(done.tag, 7u);
}

TEST_F(ReadPiecesTest, AShortReadGoesOnAtTheStartOfThePageWhereItStopped) {
  ReadPieces pieces({});
  ASSERT_TRUE(pieces.Add(Request(3)));
  const uint32_t piece = pieces.Start().value();
  EXPECT_TRUE(pieces.Ended(piece, kPage + 100));
  EXPECT_EQ(pieces.Rest(piece).offset, 17 * kPage);
  EXPECT_EQ(pieces.Rest(piece).dst.size(), 2 * kPage);
  EXPECT_FALSE(pieces.Ended(piece, 2 * kPage));
  EXPECT_EQ(TakeOne(pieces).status, ReadStatus::kOk);
}

TEST_F(ReadPiecesTest, AReadThatBringsNothingMoreIsTheEndOfTheFile) {
  ReadPieces pieces({});
  ASSERT_TRUE(pieces.Add(Request(3)));
  const uint32_t piece = pieces.Start().value();
  EXPECT_TRUE(pieces.Ended(piece, kPage + 100));
  EXPECT_FALSE(pieces.Ended(piece, 100));
  const ReadDone done = TakeOne(pieces);
  EXPECT_EQ(done.status, ReadStatus::kShort);
  EXPECT_EQ(done.size_bytes, kPage + 100);
}

TEST_F(ReadPiecesTest, TheFirstPieceThatEndsEarlySaysWhereTheFileEnds) {
  ReadPieces pieces({.split_bytes = kPage});
  ASSERT_TRUE(pieces.Add(Request(3)));
  const uint32_t a = pieces.Start().value();
  const uint32_t b = pieces.Start().value();
  const uint32_t c = pieces.Start().value();
  EXPECT_FALSE(pieces.Ended(c, 0));
  EXPECT_TRUE(pieces.Ended(b, 9));
  EXPECT_FALSE(pieces.Ended(b, 9));
  EXPECT_FALSE(pieces.Ended(a, kPage));
  EXPECT_EQ(TakeOne(pieces).size_bytes, kPage + 9);
}

TEST_F(ReadPiecesTest, InterruptedReadsAreRepeatedAndOthersFail) {
  ReadPieces pieces({});
  ASSERT_TRUE(pieces.Add(Request(1)));
  const uint32_t piece = pieces.Start().value();
  EXPECT_TRUE(pieces.Ended(piece, -EINTR));
  EXPECT_TRUE(pieces.Ended(piece, -EAGAIN));
  EXPECT_FALSE(pieces.Ended(piece, -EIO));
  const ReadDone done = TakeOne(pieces);
  EXPECT_EQ(done.status, ReadStatus::kFailed);
  EXPECT_EQ(done.error, EIO);
  EXPECT_EQ(done.size_bytes, 0u);
}

TEST_F(ReadPiecesTest, EndlessRefusalFailsInTheEnd) {
  ReadPieces pieces({});
  ASSERT_TRUE(pieces.Add(Request(1)));
  const uint32_t piece = pieces.Start().value();
  size_t tries = 1;
  while (pieces.Ended(piece, -EAGAIN)) ++tries;
  EXPECT_GT(tries, 100u);
  EXPECT_EQ(TakeOne(pieces).error, EAGAIN);
}

TEST_F(ReadPiecesTest, OneFailedPieceFailsTheRequestOnce) {
  ReadPieces pieces({.split_bytes = kPage});
  ASSERT_TRUE(pieces.Add(Request(2)));
  const uint32_t a = pieces.Start().value();
  const uint32_t b = pieces.Start().value();
  EXPECT_FALSE(pieces.Ended(a, -EIO));
  EXPECT_FALSE(pieces.Ended(b, kPage));
  EXPECT_EQ(pieces.num_done(), 1u);
  EXPECT_EQ(TakeOne(pieces).error, EIO);
  EXPECT_EQ(pieces.num_requests(), 0u);
}

TEST_F(ReadPiecesTest, ThereAreNoMoreRequestsAndPiecesThanAllowed) {
  ReadPieces pieces({.max_requests = 2, .max_pieces = 3, .split_bytes = kPage});
  EXPECT_TRUE(pieces.Add(Request(2)));
  EXPECT_TRUE(pieces.Add(Request(2)));
  EXPECT_FALSE(pieces.Add(Request(2)));
  const uint32_t first = pieces.Start().value();
  const uint32_t second = pieces.Start().value();
  EXPECT_TRUE(pieces.Start().has_value());
  EXPECT_FALSE(pieces.Start().has_value());
  EXPECT_FALSE(pieces.Ended(first, kPage));
  EXPECT_TRUE(pieces.Start().has_value());
  EXPECT_FALSE(pieces.Ended(second, kPage));
  EXPECT_FALSE(pieces.Add(Request(1)));  // its ReadDone was not taken yet
  TakeOne(pieces);
  EXPECT_TRUE(pieces.Add(Request(1)));
}

}  // namespace
}  // namespace muster::io

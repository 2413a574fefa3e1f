// What every engine promises, tried with each.
#include "io/read_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "io/direct_file.h"
#include "io/testing_file.h"
#include "io/thread_read_engine.h"
#include "io/uring_engine.h"
#include "tensor/aligned_buffer.h"

namespace muster::io {
namespace {

constexpr size_t kPage = kReadAlignment;
constexpr size_t kFilePages = 300;
constexpr size_t kTailBytes = 123;  // the file's last page
constexpr size_t kDepth = 8;
constexpr size_t kArenaPages = 256;

struct EngineCase {
  std::string name;
  // nullptr: not on this machine
  std::function<std::unique_ptr<ReadEngine>(std::span<std::byte> arena)> open;
};

// How a failing test names its case.
void PrintTo(const EngineCase& test, std::ostream* out) { *out << test.name; }

std::unique_ptr<ReadEngine> Uring(const UringOptions& options) {
  auto engine = OpenUringEngine(options);
  return engine.ok() ? std::move(*engine) : nullptr;
}

class ReadEngineTest : public ::testing::TestWithParam<EngineCase> {
 protected:
  void SetUp() override {
    engine_ = GetParam().open(arena_.bytes());
    if (engine_ == nullptr) GTEST_SKIP() << "not on this machine";
  }
  static Result<DirectFile> OpenFile(const TestingFile& file) {
    return DirectFile::Open(file.path());
  }
  std::span<std::byte> Pages(size_t first, size_t count) {
    return arena_.bytes().subspan(first * kPage, count * kPage);
  }
  ReadRequest Request(size_t file_page, size_t arena_page, size_t num_pages) {
    return {.fd = file_->fd(),
            .offset = file_page * kPage,
            .dst = Pages(arena_page, num_pages),
            .tag = file_page};
  }
  ReadDone ReadOne(const ReadRequest& request) {
    ReadDone done;
    EXPECT_EQ(engine_->Submit({&request, 1}), 1u);
    EXPECT_EQ(engine_->Wait(1, {&done, 1}), 1u);
    return done;
  }

  TestingFile bytes_{"read_engine_test",
                     RandomBytes((kFilePages - 1) * kPage + kTailBytes, 5)};
  Result<DirectFile> file_ = OpenFile(bytes_);
  AlignedBuffer arena_{kArenaPages * kPage};
  std::unique_ptr<ReadEngine> engine_;
};

TEST_P(ReadEngineTest, RandomReadsReturnTheFilesBytes) {
  std::mt19937_64 random(3);
  const size_t pages_each = kArenaPages / kDepth;
  for (int round = 0; round < 20; ++round) {
    std::vector<ReadRequest> requests;
    for (size_t i = 0; i < kDepth; ++i) {
      const size_t num_pages = 1 + random() % pages_each;
      const size_t page = random() % (kFilePages - num_pages);
      requests.push_back(Request(page, i * pages_each, num_pages));
      requests.back().tag = i;
    }
    ASSERT_EQ(engine_->Submit(requests), kDepth);
    std::vector<ReadDone> done(kDepth);
    ASSERT_EQ(engine_->Wait(kDepth, done), kDepth);
    for (const ReadDone& d : done) {
      const ReadRequest& request = requests[d.tag];
      ASSERT_EQ(d.status, ReadStatus::kOk);
      ASSERT_EQ(d.size_bytes, request.dst.size());
      ASSERT_TRUE(std::equal(
          request.dst.begin(), request.dst.end(),
          bytes_.bytes().begin() + static_cast<ptrdiff_t>(request.offset)));
    }
  }
}

TEST_P(ReadEngineTest, EveryTagComesBackOnce) {
  std::vector<ReadRequest> requests;
  for (size_t i = 0; i < kDepth; ++i) requests.push_back(Request(i, i, 1));
  ASSERT_EQ(engine_->Submit(requests), kDepth);
  EXPECT_EQ(engine_->num_in_flight(), kDepth);
  std::vector<uint64_t> tags;
  while (engine_->num_in_flight() > 0) {
    std::vector<ReadDone> done(3);
    const size_t count = engine_->Wait(1, done);
    for (size_t i = 0; i < count; ++i) tags.push_back(done[i].tag);
  }
  EXPECT_THAT(tags, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
}

TEST_P(ReadEngineTest, MoreRequestsThanDepthAreStartedInPart) {
  std::vector<ReadRequest> requests;
  for (size_t i = 0; i < 3 * kDepth; ++i) requests.push_back(Request(i, i, 1));
  EXPECT_EQ(engine_->Submit(requests), kDepth);
  EXPECT_EQ(engine_->Submit(requests), 0u);
  std::vector<ReadDone> done(2);
  EXPECT_EQ(engine_->Wait(2, done), 2u);
  EXPECT_EQ(engine_->Submit(requests), 2u);
}

TEST_P(ReadEngineTest, ALookReturnsWhatHasEndedAndNoMore) {
  std::vector<ReadDone> done(4);
  EXPECT_EQ(engine_->Wait(0, done), 0u);
  const ReadRequest request = Request(1, 0, 1);
  ASSERT_EQ(engine_->Submit({&request, 1}), 1u);
  size_t count = 0;
  while (count == 0) count = engine_->Wait(0, done);
  EXPECT_EQ(count, 1u);
}

TEST_P(ReadEngineTest, TheLastPageComesBackShort) {
  const ReadDone done = ReadOne(Request(kFilePages - 2, 0, 2));
  EXPECT_EQ(done.status, ReadStatus::kShort);
  EXPECT_EQ(done.size_bytes, kPage + kTailBytes);
  EXPECT_TRUE(std::equal(bytes_.bytes().end() - kTailBytes,
                         bytes_.bytes().end(), arena_.data() + kPage));
}

TEST_P(ReadEngineTest, ALargeReadOverTheEndComesBackShort) {
  const ReadDone done = ReadOne(Request(kFilePages - 100, 0, 200));
  EXPECT_EQ(done.status, ReadStatus::kShort);
  EXPECT_EQ(done.size_bytes, 99 * kPage + kTailBytes);
  EXPECT_TRUE(std::equal(bytes_.bytes().end() - (99 * kPage + kTailBytes),
                         bytes_.bytes().end(), arena_.data()));
}

TEST_P(ReadEngineTest, BehindTheEndThereIsNothing) {
  const ReadDone done = ReadOne(Request(kFilePages + 5, 0, 1));
  EXPECT_EQ(done.status, ReadStatus::kShort);
  EXPECT_EQ(done.size_bytes, 0u);
}

TEST_P(ReadEngineTest, AFailedReadSaysWhy) {
  ReadRequest request = Request(0, 0, 2);
  request.fd = -1;
  const ReadDone done = ReadOne(request);
  EXPECT_EQ(done.status, ReadStatus::kFailed);
  EXPECT_EQ(done.error, EBADF);
  EXPECT_EQ(ReadOne(Request(0, 0, 2)).status, ReadStatus::kOk);
}

// The memory goes right after the engine: a sanitizer sees who still writes.
TEST_P(ReadEngineTest, ADestroyedEngineLeavesNoReadBehind) {
  auto memory = std::make_unique<AlignedBuffer>(kArenaPages * kPage);
  std::vector<ReadRequest> requests;
  const size_t pages_each = kArenaPages / kDepth;
  for (size_t i = 0; i < kDepth; ++i) {
    requests.push_back(Request(i, 0, pages_each));
    requests.back().dst =
        memory->bytes().subspan(i * pages_each * kPage, pages_each * kPage);
  }
  ASSERT_EQ(engine_->Submit(requests), kDepth);
  engine_.reset();
  std::fill(memory->bytes().begin(), memory->bytes().end(), std::byte{1});
  EXPECT_TRUE(std::ranges::all_of(
      memory->bytes(), [](std::byte b) { return b == std::byte{1}; }));
}

std::vector<EngineCase> Cases() {
  return {
      {"Uring", [](auto) { return Uring({.depth = kDepth}); }},
      {"UringInPieces",
       [](auto) { return Uring({.depth = kDepth, .split_bytes = 3 * kPage}); }},
      {"Threads",
       [](auto) {
         return std::make_unique<ThreadReadEngine>(
             ThreadReadOptions{.num_threads = 3, .depth = kDepth});
       }},
      {"ThreadsInPieces",
       [](auto) {
         return std::make_unique<ThreadReadEngine>(ThreadReadOptions{
             .num_threads = 4, .depth = kDepth, .split_bytes = 3 * kPage});
       }},
      {"UringIntoRegisteredMemory",
       [](auto arena) {
         return Uring({.depth = kDepth,
                       .split_bytes = 16 * kPage,
                       .registered = arena.first(arena.size() / 2)});
       }},
  };
}

INSTANTIATE_TEST_SUITE_P(All, ReadEngineTest, ::testing::ValuesIn(Cases()),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace muster::io

#include "io/object/stage.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "io/direct_file.h"
#include "io/file.h"
#include "io/object/presence_map.h"
#include "io/object/test_server.h"

namespace muster::io {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kBlock = kStagedBlockBytes;
constexpr uint64_t kSize = 40 * kBlock + 1234;

class StageTest : public ::testing::Test {
 protected:
  StageTest() {
    std::string folder = ::testing::TempDir() + "muster-stage-XXXXXX";
    options_.folder = mkdtemp(folder.data());
    options_.client.clock = &clock_;
  }
  ~StageTest() override {
    stage_.reset();
    fs::remove_all(options_.folder);
  }

  void OpenStageHere() {
    stage_.reset();  // only one at a time has the folder
    auto stage = OpenStage({}, options_);
    ASSERT_TRUE(stage.ok()) << stage.status().message();
    stage_ = std::move(stage).value();
    InstallRemoteFiles(stage_);
  }
  std::string Url(const std::string& faults = "-") const {
    return TestServerUrl(
        fmt::format("/o/{}/{}/{}.bin?key=secret", session_, faults, kSize));
  }
  File OpenFile(const std::string& faults = "-") {
    if (stage_ == nullptr) OpenStageHere();
    auto file = File::Open(Url(faults));
    EXPECT_TRUE(file.ok()) << file.status().message();
    return std::move(file).value();
  }
  static Status ReadRight(const File& file, uint64_t offset,
                          uint64_t size_bytes) {
    std::vector<std::byte> bytes(size_bytes);
    RETURN_IF_ERROR(file.ReadAt(offset, bytes));
    if (bytes != ServedBytes(offset, size_bytes)) return Corrupt("other bytes");
    return {};
  }
  static void ExpectRead(const File& file, uint64_t offset,
                         uint64_t size_bytes) {
    const Status status = ReadRight(file, offset, size_bytes);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  // Requests that were not first looks.
  size_t NumFetches() const {
    const auto seen = SeenBy(session_);
    return static_cast<size_t>(
        std::count_if(seen.begin(), seen.end(), [](const std::string& line) {
          return line.find("range=bytes=0-0 ") == line.npos;
        }));
  }
  static uint64_t DiskBytes(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    return static_cast<uint64_t>(info.st_blocks) * 512;
  }

  const std::string session_ = NewSession();
  FakeClock clock_;
  StageOptions options_;
  std::shared_ptr<RemoteFiles> stage_;
};

TEST_F(StageTest, AFileOfAUrlReadsWhatTheServerHas) {
  const File file = OpenFile();
  EXPECT_EQ(file.size_bytes(), kSize);
  std::mt19937 random(7);
  for (int i = 0; i < 30; ++i) {
    const uint64_t offset = random() % kSize;
    ExpectRead(file, offset, random() % std::min(5 * kBlock, kSize - offset));
  }
  ExpectRead(file, kSize - 1, 1);
  std::byte beyond[2];
  EXPECT_EQ(file.ReadAt(kSize - 1, beyond).code(), Code::kIoError);
}

TEST_F(StageTest, OnlyTheBlocksThatAreReadAreFetched) {
  const File file = OpenFile();
  ExpectRead(file, 10 * kBlock + 5, 2 * kBlock);
  EXPECT_EQ(file.remote()->fetched_bytes(), 3 * kBlock);
  EXPECT_EQ(NumFetches(), 1u);
  EXPECT_LE(DiskBytes(file.remote()->local_path()), 4 * kBlock);
}

TEST_F(StageTest, AnotherRunFetchesNothingThatThisOneStaged) {
  ExpectRead(OpenFile(), 3, kSize - 3);
  const size_t before = NumFetches();
  OpenStageHere();
  const File file = OpenFile();
  ExpectRead(file, 0, kSize);
  EXPECT_EQ(NumFetches(), before);
  EXPECT_EQ(file.remote()->fetched_bytes(), 0u);
}

TEST_F(StageTest, ReadersOfOneBlockShareItsFetch) {
  const File file = OpenFile();
  std::vector<std::thread> readers;
  for (int i = 0; i < 8; ++i) {
    readers.emplace_back([&] { ExpectRead(file, 5 * kBlock, kBlock); });
  }
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(NumFetches(), 1u);
}

TEST_F(StageTest, ThreadsThatReadEverythingGetEveryBlockOnce) {
  const File file = OpenFile();
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&, i] {
      std::mt19937 random(i);
      for (int read = 0; read < 40; ++read) {
        const uint64_t offset = random() % (kSize - 2 * kBlock);
        ExpectRead(file, offset, 1 + random() % (2 * kBlock));
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  ExpectRead(file, 0, kSize);
  EXPECT_EQ(file.remote()->fetched_bytes(), kSize);
}

TEST_F(StageTest, NeighboursAreFetchedInPiecesOfTheGivenSize) {
  options_.fetch_bytes = 16 * kBlock;
  const File file = OpenFile();
  ExpectRead(file, 0, 40 * kBlock);
  EXPECT_EQ(NumFetches(), 3u);
}

TEST_F(StageTest, APrefetchFillsBlocksThatNobodyHolds) {
  const File file = OpenFile();
  const RemoteRange all = {file.remote(), 0, kSize};
  stage_->Prefetch({&all, 1});
  ExpectRead(file, 30 * kBlock, kBlock);
  ExpectRead(file, 0, kSize);
  EXPECT_EQ(file.remote()->fetched_bytes(), kSize);
}

TEST_F(StageTest, TheDiskBudgetIsKeptAndWhatWasGivenUpIsFetchedAgain) {
  options_.disk_bytes = 24 * kBlock;
  options_.fetch_bytes = 4 * kBlock;
  options_.max_fetches = 1;
  const File file = OpenFile();
  for (int round = 0; round < 3; ++round) {
    for (uint64_t block = 0; block < 40; ++block) {
      ExpectRead(file, block * kBlock, kBlock);
      // A block more: the file system counts its own for the file.
      EXPECT_LE(DiskBytes(file.remote()->local_path()), 25 * kBlock);
    }
  }
  EXPECT_GT(file.remote()->fetched_bytes(), kSize);
}

TEST_F(StageTest, WhatIsHeldIsNotGivenUp) {
  options_.disk_bytes = 20 * kBlock;
  const File file = OpenFile();
  const auto hold = RangeHold::Take({file.remote(), 0, kBlock});
  ASSERT_TRUE(hold.ok());
  for (uint64_t block = 1; block < 40; ++block) {
    ExpectRead(file, block * kBlock, kBlock);
  }
  const RemoteRange held = {file.remote(), 0, kBlock};
  EXPECT_TRUE(stage_->Present({&held, 1}));
  const RemoteRange first_read = {file.remote(), 17 * kBlock, kBlock};
  EXPECT_FALSE(stage_->Present({&first_read, 1}));
}

TEST_F(StageTest, OlderObjectsMakeRoomFirst) {
  ExpectRead(OpenFile(), 0, kSize);
  stage_.reset();
  options_.disk_bytes = 48 * kBlock;
  const File other = OpenFile("x");  // another URL
  ExpectRead(other, 0, 20 * kBlock);
  const auto folders = std::distance(fs::directory_iterator(options_.folder),
                                     fs::directory_iterator());
  EXPECT_EQ(folders, 1);
  EXPECT_EQ(other.remote()->fetched_bytes(), 20 * kBlock);
}

TEST_F(StageTest, DroppedBlocksAreFetchedAgain) {
  const File file = OpenFile();
  ExpectRead(file, 0, kSize);
  std::fstream(file.remote()->local_path()) << "wrong";
  const RemoteRange range = {file.remote(), 0, 10};
  stage_->Drop({&range, 1});
  ExpectRead(file, 0, kSize);
  EXPECT_EQ(file.remote()->fetched_bytes(), kSize + kBlock);
}

TEST_F(StageTest, ForgottenRequestsAreNotAnswered) {
  const File file = OpenFile();
  const RemoteRange range = {file.remote(), 0, kSize};
  {
    ReadyQueue ready;
    stage_->Start({&range, 1}, 1, &ready);
    stage_->Forget(&ready);
    RangesReady done;
    if (ready.Take(&done) && done.status.ok()) stage_->Release({&range, 1});
  }
  ExpectRead(file, 0, kSize);
}

TEST_F(StageTest, ASecondProcessIsToldThatTheStageIsTaken) {
  const File file = OpenFile();
  const auto second = OpenStage({}, options_);
  ASSERT_TRUE(second.ok());
  const auto refused = (*second)->Open(Url());
  EXPECT_EQ(refused.status().code(), Code::kUnavailable);
  EXPECT_THAT(refused.status().message(),
              AllOf(HasSubstr("--stage"), Not(HasSubstr("secret"))));
}

// The map of a run that was killed, and of the data only what it names.
TEST_F(StageTest, AfterAPowerFailureNoBlockIsBelievedThatWasNotFlushed) {
  options_.sync_bytes = 3 * kBlock;
  options_.fetch_bytes = 2 * kBlock;
  uint64_t fetched_bytes = 0;
  std::string folder;
  {
    const File file = OpenFile();
    for (uint64_t block = 0; block < 21; block += 2) {
      ExpectRead(file, block * kBlock, kBlock);
    }
    fetched_bytes = file.remote()->fetched_bytes();
    folder = fs::path(file.remote()->local_path()).parent_path();
    fs::copy_file(folder + "/map", folder + "/killed");
  }
  stage_.reset();
  fs::rename(folder + "/killed", folder + "/map");
  uint64_t named = 0;
  {
    const auto map = PresenceMap::Open(
        folder + "/map",
        {.name = TestServerUrl(fmt::format("/o/{}/-/{}.bin", session_, kSize)),
         .size_bytes = kSize,
         .etag = fmt::format("\"v1-{}\"", kSize)});
    ASSERT_TRUE(map.ok());
    EXPECT_FALSE((*map)->clear());
    std::fstream data(folder + "/data");
    for (uint64_t block = 0; block < NumStagedBlocks(kSize); ++block) {
      if ((*map)->Has(block)) {
        ++named;
        continue;
      }
      data.seekp(static_cast<std::streamoff>(block * kBlock));
      data << std::string(std::min(kBlock, kSize - block * kBlock), 'x');
    }
  }
  EXPECT_GT(named, 0u);
  EXPECT_LE(named * kBlock, fetched_bytes);
  const File file = OpenFile();
  ExpectRead(file, 0, kSize);
  EXPECT_EQ(file.remote()->fetched_bytes(), kSize - named * kBlock);
}

TEST_F(StageTest, ATornMapIsNotBelieved) {
  ExpectRead(OpenFile(), 0, kSize);
  stage_.reset();
  for (const auto& entry : fs::directory_iterator(options_.folder)) {
    fs::resize_file(entry.path() / "map", 40);
  }
  const File file = OpenFile();
  ExpectRead(file, 0, kSize);
  EXPECT_EQ(file.remote()->fetched_bytes(), kSize);
}

TEST_F(StageTest, AChangedObjectGetsAFolderOfItsOwn) {
  OpenStageHere();
  ASSERT_TRUE(File::Open(Url("!etag,1")).ok());
  OpenStageHere();
  ExpectRead(OpenFile("!etag,1"), 0, kSize);
  EXPECT_EQ(std::distance(fs::directory_iterator(options_.folder),
                          fs::directory_iterator()),
            2);
}

TEST_F(StageTest, WithoutAStrongETagNothingIsKept) {
  ExpectRead(OpenFile("!weak"), 0, kSize);
  OpenStageHere();
  const File file = OpenFile("!weak");
  ExpectRead(file, 0, kSize);
  EXPECT_EQ(file.remote()->fetched_bytes(), kSize);
}

TEST_F(StageTest, AFaultThatPassesIsMended) {
  for (const char* faults : {"status=500,2", "truncate,2", "drop,1"}) {
    const File file = OpenFile(faults);
    ExpectRead(file, kBlock, 3 * kBlock);
  }
}

TEST_F(StageTest, AFaultThatStaysFailsTheReadAndSaysWhy) {
  for (const char* fault : {"status=500", "truncate", "whole", "etag"}) {
    const File file = OpenFile(fault);
    const Status status = ReadRight(file, kBlock, 10);
    EXPECT_FALSE(status.ok()) << fault;
    EXPECT_THAT(status.message(), AllOf(HasSubstr(fmt::format("{}.bin", kSize)),
                                        Not(HasSubstr("secret"))))
        << fault;
  }
}

TEST_F(StageTest, AReadThatFailedIsTriedAgainByTheNext) {
  options_.client.max_attempts = 1;
  const File file = OpenFile("status=500,1");
  EXPECT_FALSE(ReadRight(file, 0, kBlock).ok());
  ExpectRead(file, 0, kBlock);
}

TEST_F(StageTest, AServerWithoutRangesIsRefused) {
  OpenStageHere();
  const auto file = File::Open(Url("!noranges"));
  EXPECT_EQ(file.status().code(), Code::kUnsupported);
  EXPECT_THAT(file.status().message(), HasSubstr("download"));
}

TEST_F(StageTest, AFullDiskFailsTheReadAndTheRestStays) {
  if (mount("none", options_.folder.c_str(), "tmpfs", 0, "size=400k") != 0) {
    GTEST_SKIP() << "may not mount";
  }
  {
    const File file = OpenFile();
    ExpectRead(file, 0, 4 * kBlock);
    Status status;
    for (uint64_t block = 4; block < 40 && status.ok(); ++block) {
      status = ReadRight(file, block * kBlock, kBlock);
    }
    EXPECT_EQ(status.code(), Code::kResourceExhausted) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("--disk"));
    ExpectRead(file, 0, 4 * kBlock);
  }
  stage_.reset();
  umount(options_.folder.c_str());
}

TEST(RemoteFilesTest, AUrlIsRefusedWhereNobodyOpensUrls) {
  const auto file = File::Open("https://host/model.gguf?key=secret");
  EXPECT_EQ(file.status().code(), Code::kUnsupported);
  EXPECT_THAT(file.status().message(), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace muster::io

#include "io/object/object_download.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "io/file.h"
#include "io/object/digest.h"
#include "io/object/partial_file.h"
#include "io/object/test_server.h"

namespace muster::io {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr uint64_t kSize = 1'000'003;

std::string Served(uint64_t size_bytes) {
  const auto bytes = ServedBytes(0, size_bytes);
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

class ObjectDownloadTest : public ::testing::Test {
 protected:
  ObjectDownloadTest()
      : folder_(::testing::TempDir() + "muster_download_" + session_),
        path_(folder_ + "/model.bin") {
    fs::create_directories(folder_);
  }
  ~ObjectDownloadTest() override { fs::remove_all(folder_); }

  std::string Url(const std::string& faults, uint64_t size_bytes = kSize) {
    return TestServerUrl(
        fmt::format("/o/{}/{}/{}.bin", session_, faults, size_bytes));
  }
  Result<DownloadOutcome> Download(const std::string& url) {
    DownloadProgress progress;
    return Download(url, progress);
  }
  Result<DownloadOutcome> Download(const std::string& url,
                                   DownloadProgress& progress) {
    ObjectClient client(
        TestServerSettings(),
        {.max_attempts = 3, .allow_private_addresses = true, .clock = &clock_});
    return DownloadObject(client, url, path_, options_, progress);
  }
  std::string OnDisk() const {
    const auto text = ReadTextFile(path_, 1 << 24);
    return text.ok() ? *text : text.status().message();
  }
  bool LeavesNothingElse() const {
    return !fs::exists(path_ + ".partial") &&
           !fs::exists(path_ + ".partial.journal");
  }

  const std::string session_ = NewSession();
  const std::string folder_;
  const std::string path_;
  FakeClock clock_;
  DownloadOptions options_ = {.part_bytes = 100'000, .max_parallel = 3};
};

TEST_F(ObjectDownloadTest, TheWholeObjectArrives) {
  DownloadProgress progress;
  const auto outcome = Download(Url("-"), progress);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(OnDisk(), Served(kSize));
  EXPECT_TRUE(LeavesNothingElse());
  EXPECT_EQ(outcome->fetched_bytes, kSize);
  EXPECT_EQ(progress.done_bytes, kSize);
  EXPECT_EQ(progress.total_bytes, kSize);
}

TEST_F(ObjectDownloadTest, SmallAndEmptyObjectsArrive) {
  for (const uint64_t size_bytes : {0, 1, 100'000, 100'001}) {
    const auto outcome = Download(Url("-", size_bytes));
    ASSERT_TRUE(outcome.ok()) << outcome.status().message();
    EXPECT_EQ(OnDisk(), Served(size_bytes));
  }
}

TEST_F(ObjectDownloadTest, AServerWithoutRangesIsReadInOnePiece) {
  const auto outcome = Download(Url("!noranges"));
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(OnDisk(), Served(kSize));
}

TEST_F(ObjectDownloadTest, AFailedDownloadGoesOnWhereItStopped) {
  const auto failed = Download(Url("-+status=404,1"));
  EXPECT_EQ(failed.status().code(), Code::kNotFound);
  EXPECT_FALSE(fs::exists(path_));
  // Parts that had arrived are in the journal.
  options_.max_parallel = 1;
  const auto again = Download(Url("-+status=404,1"));
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(OnDisk(), Served(kSize));
  EXPECT_TRUE(LeavesNothingElse());
}

TEST_F(ObjectDownloadTest, PartsOfTheJournalAreNotFetchedAgain) {
  {
    const auto info =
        PartialFile::Open(path_, {.size_bytes = kSize,
                                  .part_bytes = options_.part_bytes,
                                  .etag = fmt::format("\"v1-{}\"", kSize)});
    ASSERT_TRUE(info.ok()) << info.status().message();
    ASSERT_TRUE((*info)->Write(3, ServedBytes(300'000, 100'000)).ok());
    ASSERT_TRUE((*info)->Sync().ok());
    ASSERT_TRUE((*info)->Write(4, ServedBytes(400'000, 100'000)).ok());
  }  // part 4 was not synced: it is not believed
  const auto outcome = Download(Url("-"));
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->fetched_bytes, kSize - 100'000);
  EXPECT_EQ(OnDisk(), Served(kSize));
}

TEST_F(ObjectDownloadTest, PartsOfAnotherObjectAreNotKept) {
  {
    const auto other = PartialFile::Open(
        path_,
        {.size_bytes = kSize, .part_bytes = 100'000, .etag = "\"other\""});
    ASSERT_TRUE(other.ok());
    const std::vector<std::byte> rubbish(100'000);
    ASSERT_TRUE((*other)->Write(3, rubbish).ok());
    ASSERT_TRUE((*other)->Sync().ok());
  }
  const auto outcome = Download(Url("-"));
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->fetched_bytes, kSize);
  EXPECT_EQ(OnDisk(), Served(kSize));
}

TEST_F(ObjectDownloadTest, ADamagedJournalBeginsAnew) {
  std::ofstream(path_ + ".partial.journal") << "muster-download 1\nsize x\n";
  std::ofstream(path_ + ".partial") << "rubbish";
  const auto outcome = Download(Url("-"));
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(OnDisk(), Served(kSize));
}

TEST_F(ObjectDownloadTest, AnObjectThatChangesMidWayIsNotKept) {
  const auto outcome = Download(Url("etag"));
  EXPECT_EQ(outcome.status().code(), Code::kCorrupt);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(ObjectDownloadTest, TheChecksumIsChecked) {
  const std::string url = fmt::format("hf://org/repo/{}/-/1000.bin", session_);
  const auto outcome = Download(url);
  ASSERT_TRUE(outcome.ok()) << outcome.status().message();
  EXPECT_EQ(outcome->sha256, Hex(Sha256Of(Served(1000))));
  EXPECT_EQ(outcome->fetched_bytes, 1000u);
  // What is there and right is left alone.
  EXPECT_EQ(Download(url)->fetched_bytes, 0u);
  // What is there and wrong is replaced.
  std::ofstream(path_) << std::string(1000, 'x');
  EXPECT_EQ(Download(url)->fetched_bytes, 1000u);
  EXPECT_EQ(OnDisk(), Served(1000));
}

TEST_F(ObjectDownloadTest, AWrongChecksumLeavesNothing) {
  const auto outcome =
      Download(fmt::format("hf://org/repo/{}/lie/1000.bin", session_));
  EXPECT_EQ(outcome.status().code(), Code::kCorrupt);
  EXPECT_THAT(outcome.status().message(), HasSubstr("SHA-256"));
  EXPECT_FALSE(fs::exists(path_));
  EXPECT_TRUE(LeavesNothingElse());
}

TEST_F(ObjectDownloadTest, TheCallersChecksumCounts) {
  options_.sha256 = std::string(64, '0');
  const auto outcome = Download(Url("-"));
  EXPECT_EQ(outcome.status().code(), Code::kCorrupt);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(ObjectDownloadTest, ADiskThatIsTooSmallIsSaidFirst) {
  const auto file = PartialFile::Open(
      path_, {.size_bytes = uint64_t{1} << 60, .part_bytes = 1 << 30});
  EXPECT_EQ(file.status().code(), Code::kResourceExhausted);
  EXPECT_THAT(file.status().message(), HasSubstr("the disk has"));
  EXPECT_TRUE(LeavesNothingElse());
}

TEST_F(ObjectDownloadTest, TwoDownloadsOfOnePathExcludeEachOther) {
  const DownloadPlan plan = {.size_bytes = 10, .part_bytes = 10};
  const auto first = PartialFile::Open(path_, plan);
  ASSERT_TRUE(first.ok());
  const auto second = PartialFile::Open(path_, plan);
  EXPECT_EQ(second.status().code(), Code::kUnavailable);
  EXPECT_THAT(second.status().message(), HasSubstr("another process"));
}

TEST_F(ObjectDownloadTest, AFolderThatIsNotThereIsAnIoError) {
  const auto file = PartialFile::Open(folder_ + "/no/such/file",
                                      {.size_bytes = 10, .part_bytes = 10});
  EXPECT_EQ(file.status().code(), Code::kIoError);
}

TEST_F(ObjectDownloadTest, AStopKeepsWhatIsThere) {
  DownloadProgress progress;
  progress.stop = true;
  const auto outcome = Download(Url("-"), progress);
  EXPECT_EQ(outcome.status().code(), Code::kCancelled);
  EXPECT_TRUE(fs::exists(path_ + ".partial.journal"));
}

}  // namespace
}  // namespace muster::io

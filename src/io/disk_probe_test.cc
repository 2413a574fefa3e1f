#include "io/disk_probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "io/known_disk.h"
#include "io/testing_file.h"
#include "io/user_cache.h"

namespace muster::io {
namespace {

TEST(ChooseTrialTest, TheFastestWins) {
  const auto best = ChooseTrial(std::array<DiskTrial, 3>{
      DiskTrial{.direct = true, .depth = 1, .bytes_per_second = 1e9},
      DiskTrial{.direct = true, .depth = 2, .bytes_per_second = 2e9},
      DiskTrial{.direct = false, .depth = 1, .bytes_per_second = 3e9}});
  EXPECT_FALSE(best.direct);
  EXPECT_EQ(best.bytes_per_second, 3e9);
}

TEST(ChooseTrialTest, OfThoseThatComeNearTheDirectAndShallowOneWins) {
  const auto best = ChooseTrial(std::array<DiskTrial, 4>{
      DiskTrial{.direct = false, .depth = 1, .bytes_per_second = 3e9},
      DiskTrial{.direct = true, .depth = 32, .bytes_per_second = 2.95e9},
      DiskTrial{.direct = true, .depth = 4, .bytes_per_second = 2.9e9},
      DiskTrial{.direct = true, .depth = 2, .bytes_per_second = 2e9}});
  EXPECT_TRUE(best.direct);
  EXPECT_EQ(best.depth, 4u);
}

class DiskProbeTest : public ::testing::Test {
 protected:
  DiskProbeTest() {
    std::filesystem::remove_all(cache_);
    setenv("XDG_CACHE_HOME", cache_.c_str(), 1);
  }
  ~DiskProbeTest() override {
    unsetenv("XDG_CACHE_HOME");
    std::filesystem::remove_all(cache_);
  }
  std::string cache_ = ::testing::TempDir() + "disk_probe_test_cache";
  TestingFile file_{"disk_probe_test", RandomBytes(size_t{3} << 20, 1)};
};

TEST_F(DiskProbeTest, AFileIsProbedAndItsDiskRemembered) {
  const auto first = KnownDisk(file_.path());
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_GT(first->best.bytes_per_second, 0);
  EXPECT_GE(first->best.depth, 2u);
  EXPECT_TRUE(first->why_not_direct.empty() || !first->best.direct);
  const auto again = KnownDisk(::testing::TempDir());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(DiskProbeToJson(*again), DiskProbeToJson(*first));
}

TEST_F(DiskProbeTest, WhatIsNotThereAndWhatIsTooSmallIsRefused) {
  EXPECT_EQ(KnownDisk("/no/such/file").status().code(), Code::kNotFound);
  const TestingFile small("disk_probe_test_small", RandomBytes(100, 1));
  EXPECT_EQ(ProbeDisk(small.path()).status().code(), Code::kInvalidArgument);
}

TEST(DiskProbeJsonTest, WhatWasWrittenIsReadAndRubbishIsNot) {
  const DiskProbe probe{
      .best = {.direct = true, .depth = 8, .bytes_per_second = 2e9},
      .engine = "io_uring, depth 8"};
  const auto good = DiskProbeToJson(probe);
  ASSERT_TRUE(DiskProbeFromJson(good).has_value());
  EXPECT_EQ(DiskProbeToJson(*DiskProbeFromJson(good)), good);
  for (const auto& [key, rubbish] :
       std::vector<std::pair<std::string, nlohmann::json>>{
           {"direct", 1},
           {"depth", 0},
           {"depth", -1},
           {"depth", 1'000'000},
           {"depth", "8"},
           {"bytes_per_second", 0},
           {"bytes_per_second", nullptr},
           {"engine", 3}}) {
    auto bad = good;
    bad[key] = rubbish;
    EXPECT_FALSE(DiskProbeFromJson(bad).has_value()) << bad.dump();
  }
  EXPECT_FALSE(DiskProbeFromJson(nlohmann::json::array()).has_value());
}

}  // namespace
}  // namespace muster::io

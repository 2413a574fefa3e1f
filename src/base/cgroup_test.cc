#include "base/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace muster {
namespace {

using testing::ElementsAre;

// A folder with proc and sys of a made-up system.
class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = testing::TempDir() + "cgroup_test_" +
            testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::string root_;
};

TEST_F(CgroupTest, FoldersGoUpToTheTop) {
  Write("/proc/self/cgroup", "0::/user/job\n");
  const auto group = FindCgroup("cpu", root_);
  ASSERT_TRUE(group.has_value());
  EXPECT_TRUE(group->is_v2);
  EXPECT_THAT(group->folders, ElementsAre(root_ + "/sys/fs/cgroup/user/job",
                                          root_ + "/sys/fs/cgroup/user",
                                          root_ + "/sys/fs/cgroup"));
}

TEST_F(CgroupTest, AVersion1ControllerIsTakenBeforeVersion2) {
  Write("/proc/self/cgroup", "4:cpu,cpuacct:/job\n0::/\n");
  EXPECT_THAT(FindCgroup("cpu", root_)->folders,
              ElementsAre(root_ + "/sys/fs/cgroup/cpu/job",
                          root_ + "/sys/fs/cgroup/cpu"));
  EXPECT_TRUE(FindCgroup("memory", root_)->is_v2);
}

TEST_F(CgroupTest, NoControlGroupsNoQuota) {
  EXPECT_FALSE(FindCgroup("cpu", root_).has_value());
  EXPECT_FALSE(CpuQuota(root_).has_value());
}

TEST_F(CgroupTest, TheTightestQuotaOnTheWayUpCounts) {
  Write("/proc/self/cgroup", "0::/user/job\n");
  Write("/sys/fs/cgroup/user/job/cpu.max", "400000 100000\n");
  Write("/sys/fs/cgroup/user/cpu.max", "150000 100000\n");
  EXPECT_EQ(CpuQuota(root_), 1.5);
}

TEST_F(CgroupTest, AGroupWithoutLimitHasNoQuota) {
  Write("/proc/self/cgroup", "0::/job\n");
  Write("/sys/fs/cgroup/job/cpu.max", "max 100000\n");
  EXPECT_FALSE(CpuQuota(root_).has_value());
}

TEST_F(CgroupTest, Version1KeepsQuotaAndPeriodInTwoFiles) {
  Write("/proc/self/cgroup", "2:cpu:/job\n");
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "300000\n");
  Write("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  Write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(CpuQuota(root_), 3.0);
}

TEST_F(CgroupTest, AGroupOutsideTheContainerIsLookedUpAtItsTop) {
  // The path is the host's; the container sees its own group as the top.
  Write("/proc/self/cgroup", "0::/docker/0123\n");
  Write("/sys/fs/cgroup/cpu.max", "200000 100000\n");
  EXPECT_EQ(CpuQuota(root_), 2.0);
}

}  // namespace
}  // namespace muster

#include "base/machine.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(MachineTest, MemoryOfThisMachineIsConsistent) {
  const MemoryInfo info = ReadMemoryInfo();
  EXPECT_GT(info.total_bytes, 0u);
  EXPECT_LE(info.available_bytes, info.total_bytes);
  EXPECT_GT(info.usable_bytes(), 0u);
  EXPECT_GT(PeakResidentBytes(), 0u);
}

TEST(MachineTest, UsableIsTheTighterOfMachineAndGroup) {
  MemoryInfo info{.total_bytes = 100, .available_bytes = 80};
  EXPECT_EQ(info.usable_bytes(), 80u);
  info.cgroup_limit_bytes = 50;
  info.cgroup_used_bytes = 20;
  EXPECT_EQ(info.usable_bytes(), 30u);
  info.cgroup_used_bytes = 70;
  EXPECT_EQ(info.usable_bytes(), 0u);
}

}  // namespace
}  // namespace muster

#include "base/cpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace muster {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CpuTopologyTest, OneHardwareThreadOfEachCoreComesFirst) {
  const CpuTopology topology("core:4 pu:2");  // cores {0,1} {2,3} {4,5} {6,7}
  EXPECT_THAT(topology.InPinningOrder({0, 1, 2, 3, 4, 5, 6, 7}),
              ElementsAre(0, 2, 4, 6, 1, 3, 5, 7));
  EXPECT_EQ(topology.NumCores({0, 1, 2, 3, 4, 5, 6, 7}), 4u);
}

TEST(CpuTopologyTest, OnlyAllowedProcessorsAreUsed) {
  const CpuTopology topology("core:4 pu:2");
  EXPECT_THAT(topology.InPinningOrder({1, 2, 3, 7}), ElementsAre(1, 2, 7, 3));
  EXPECT_EQ(topology.NumCores({1, 2, 3, 7}), 3u);
  EXPECT_THAT(topology.InPinningOrder({}), IsEmpty());
}

TEST(CpuTopologyTest, NeighbourhoodIsTheMachinesAndNotTheNumbers) {
  // As on many servers: the second threads of all cores behind the first ones.
  const CpuTopology topology("core:3 pu:2(indexes=0,3,1,4,2,5)");
  EXPECT_THAT(topology.InPinningOrder({0, 1, 2, 3, 4, 5}),
              ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(topology.NumCores({0, 3, 4}), 2u);
}

TEST(CpuTopologyTest, AnUnknownProcessorIsACoreOfItsOwn) {
  const CpuTopology topology("core:2 pu:2");
  EXPECT_THAT(topology.InPinningOrder({0, 1, 9}), ElementsAre(0, 9, 1));
  EXPECT_EQ(topology.NumCores({0, 1, 9}), 2u);
}

TEST(CpusTest, ABoundThreadMayRunThereOnly) {
  const CpuList before = AllowedCpus();
  ASSERT_FALSE(before.empty());
  std::thread([&] {
    ASSERT_TRUE(BindThisThread({before.back()}));
    EXPECT_THAT(AllowedCpus(), ElementsAre(before.back()));
  }).join();
  EXPECT_EQ(AllowedCpus(), before);
}

TEST(CpusTest, BindingToNothingIsRefusedAndChangesNothing) {
  const CpuList before = AllowedCpus();
  EXPECT_FALSE(BindThisThread({}));
  EXPECT_EQ(AllowedCpus(), before);
}

}  // namespace
}  // namespace muster

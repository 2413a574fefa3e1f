#include "base/core_pin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace muster {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr CoreWatch::Clock::time_point kNow{seconds(1000)};

TEST(CoreWatchTest, AQuietCoreIsOurs) {
  CoreWatch watch;
  watch.Add(3, seconds(1), kNow);
  EXPECT_FALSE(watch.IsShared(kNow));
}

TEST(CoreWatchTest, ACoreThatIsOftenTakenAwayIsLeftAloneForAWhile) {
  CoreWatch watch;
  watch.Add(25, milliseconds(100), kNow);
  EXPECT_TRUE(watch.IsShared(kNow));
  EXPECT_FALSE(watch.IsShared(kNow + CoreWatch::kRest));
}

TEST(CoreWatchTest, ShortTimesAddUp) {
  CoreWatch watch;
  watch.Add(2, milliseconds(5), kNow);
  EXPECT_FALSE(watch.IsShared(kNow)) << "too short to tell";
  for (int i = 0; i < 10; ++i) watch.Add(1, milliseconds(5), kNow);
  EXPECT_TRUE(watch.IsShared(kNow));
}

TEST(CoreWatchTest, OldTimesAreForgotten) {
  CoreWatch watch;
  watch.Add(0, seconds(1000), kNow - seconds(1));
  watch.Add(25, milliseconds(100), kNow);
  EXPECT_TRUE(watch.IsShared(kNow));
  watch.Add(0, milliseconds(100), kNow + seconds(2));
  EXPECT_FALSE(watch.IsShared(kNow + seconds(2)));
}

TEST(CorePinTest, TheThreadGetsItsAffinityBack) {
  const CpuList before = AllowedCpus();
  CoreWatch watch;
  {
    const CorePin pin(before.back(), before, watch);
    EXPECT_THAT(AllowedCpus(), ElementsAre(before.back()));
  }
  EXPECT_EQ(AllowedCpus(), before);
}

TEST(CorePinTest, ASharedCoreIsNotPinnedTo) {
  const CpuList before = AllowedCpus();
  CoreWatch watch;
  watch.Add(1000, milliseconds(100), CoreWatch::Clock::now());
  const CorePin pin(before.back(), before, watch);
  EXPECT_EQ(AllowedCpus(), before);
}

TEST(CorePinTest, AReviewLetsAPinnedThreadGoWhenItsCoreIsShared) {
  const CpuList before = AllowedCpus();
  CoreWatch watch;
  CorePin pin(before.back(), before, watch);
  watch.Add(1000, milliseconds(100), CoreWatch::Clock::now());
  while (AllowedCpus().size() != before.size()) pin.Review();  // takes 50 ms
  EXPECT_EQ(AllowedCpus(), before);
}

}  // namespace
}  // namespace muster

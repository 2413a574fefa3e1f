#include "io/object/backoff.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::io {
namespace {

TEST(BackoffTest, DelaysDoubleUpToTheirLimit) {
  Backoff backoff(100, 1000, 1);
  const int64_t whole[] = {100, 200, 400, 800, 1000, 1000};
  for (int retry = 0; retry < 6; ++retry) {
    const int64_t delay = backoff.DelayMs(retry);
    EXPECT_GE(delay, whole[retry] / 2);
    EXPECT_LE(delay, whole[retry]);
  }
  EXPECT_LE(backoff.DelayMs(1 << 30), 1000);
}

TEST(BackoffTest, JitterSpreadsAndASeedRepeats) {
  Backoff one(1000, 1000, 7);
  Backoff same(1000, 1000, 7);
  std::set<int64_t> seen;
  for (int i = 0; i < 50; ++i) {
    const int64_t delay = one.DelayMs(0);
    EXPECT_EQ(delay, same.DelayMs(0));
    seen.insert(delay);
  }
  EXPECT_GT(seen.size(), 25u);
}

}  // namespace
}  // namespace muster::io

#include "base/units.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(UnitsTest, BytesArePowersOf1024) {
  EXPECT_EQ(FormatBytes(512), "512 B");
  EXPECT_EQ(FormatBytes(1536), "1.50 KiB");
  EXPECT_EQ(FormatBytes(uint64_t{42} << 30), "42.00 GiB");
}

TEST(UnitsTest, CountsArePowersOf1000) {
  EXPECT_EQ(FormatCount(950), "950");
  EXPECT_EQ(FormatCount(28'800'000), "28.80 M");
}

TEST(UnitsTest, SecondsChooseTheirUnit) {
  EXPECT_EQ(FormatSeconds(0.0008), "0.8 ms");
  EXPECT_EQ(FormatSeconds(125), "2 min 05 s");
}

}  // namespace
}  // namespace muster

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

TEST(UnitsTest, SizesAreReadInPowersOf1024) {
  EXPECT_EQ(*ParseBytes("4096"), 4096u);
  EXPECT_EQ(*ParseBytes("8G"), uint64_t{8} << 30);
  EXPECT_EQ(*ParseBytes("1.5GiB"), uint64_t{3} << 29);
  EXPECT_EQ(*ParseBytes("800 mb"), uint64_t{800} << 20);
  EXPECT_EQ(*ParseBytes("0.5k"), 512u);
  EXPECT_EQ(*ParseBytes("7B"), 7u);
}

TEST(UnitsTest, WhatIsNoSizeIsRefused) {
  for (const char* text : {"", "G", "-1G", "8X", "8GG", "1e30", "nan", "inf",
                           "8G extra", "BB", "1BB"}) {
    EXPECT_EQ(ParseBytes(text).status().code(), Code::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace muster

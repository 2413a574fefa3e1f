#include "tensor/float16.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster {
namespace {

TEST(Float16Test, EveryHalfGoesThereAndBack) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const float f = F16ToF32(static_cast<uint16_t>(h));
    if (std::isnan(f)) continue;
    ASSERT_EQ(F32ToF16(f), h);
  }
}

TEST(Float16Test, RoundsToNearestEven) {
  EXPECT_EQ(F32ToF16(1.0f + 0x1p-11f), F32ToF16(1.0f));          // tie, even
  EXPECT_EQ(F32ToF16(1.0f + 3 * 0x1p-11f), F32ToF16(1.0f) + 2);  // tie, odd
  EXPECT_EQ(F32ToF16(65519.9f), 0x7BFF);
  EXPECT_EQ(F32ToF16(65520.0f), 0x7C00);
  EXPECT_EQ(F32ToF16(-std::numeric_limits<float>::infinity()), 0xFC00);
  EXPECT_EQ(F32ToF16(0x1p-25f), 0);
  EXPECT_EQ(F32ToF16(0x1.8p-25f), 1);
}

TEST(Float16Test, EveryBFloatGoesThereAndBack) {
  for (uint32_t h = 0; h < 0x10000; ++h) {
    const float f = BF16ToF32(static_cast<uint16_t>(h));
    if (std::isnan(f)) {
      ASSERT_TRUE(std::isnan(BF16ToF32(F32ToBF16(f))));
    } else {
      ASSERT_EQ(F32ToBF16(f), h);
    }
  }
}

TEST(Float16Test, BFloatsRoundToNearestEven) {
  EXPECT_EQ(F32ToBF16(1.0f + 0x1p-8f), 0x3F80);      // tie, even
  EXPECT_EQ(F32ToBF16(1.0f + 3 * 0x1p-8f), 0x3F82);  // tie, odd
  EXPECT_EQ(F32ToBF16(-1.0f - 0x1.02p-8f), 0xBF81);  // above a tie
  EXPECT_EQ(F32ToBF16(0x1.FFp127f), 0x7F80);         // infinity
  EXPECT_EQ(F32ToBF16(std::bit_cast<float>(0x7F800001u)), 0x7FC0);  // NaN
}

TEST(Float16Test, E4M3HasItsKnownValues) {
  EXPECT_EQ(F8E4M3ToF32(0x38), 1.0f);
  EXPECT_EQ(F8E4M3ToF32(0x7E), 448.0f);
  EXPECT_EQ(F8E4M3ToF32(0x01), 0x1p-9f);
  EXPECT_EQ(F8E4M3ToF32(0xB8), -1.0f);
  EXPECT_TRUE(std::isnan(F8E4M3ToF32(0x7F)));
}

}  // namespace
}  // namespace muster

#include "base/checked_math.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace muster {
namespace {

TEST(CheckedMathTest, OverflowIsNullopt) {
  EXPECT_EQ(CheckedAdd(UINT64_MAX, 1), std::nullopt);
  EXPECT_EQ(CheckedMul(uint64_t{1} << 42, uint64_t{1} << 42), std::nullopt);
  EXPECT_EQ(CheckedAlignUp(UINT64_MAX - 3, 32), std::nullopt);
}

TEST(CheckedMathTest, ValuesThatFitAreExact) {
  EXPECT_EQ(CheckedAdd(UINT64_MAX - 1, 1), UINT64_MAX);
  EXPECT_EQ(CheckedMul(3, 7), 21u);
  EXPECT_EQ(CheckedAlignUp(33, 32), 64u);
  EXPECT_EQ(CheckedAlignUp(64, 32), 64u);
}

}  // namespace
}  // namespace muster

#include "tensor/dtype.h"

#include <gtest/gtest.h>

namespace muster {
namespace {

TEST(DTypeTest, SizesFollowTheBlock) {
  EXPECT_EQ(SizeBytes(DType::kF32, 3), 12u);
  EXPECT_EQ(SizeBytes(DType::kQ8_0, 64), 68u);
  EXPECT_EQ(SizeBytes(DType::kQ4_K, 512), 288u);
}

TEST(DTypeTest, UnknownNumbersAndNamesAreNotGuessed) {
  EXPECT_EQ(DTypeFromGgml(105), std::nullopt);
  EXPECT_EQ(DTypeFromGgml(4), std::nullopt);
  EXPECT_EQ(DTypeFromSafetensors("Q4_K"), std::nullopt);
  EXPECT_EQ(DTypeFromSafetensors("F4"), std::nullopt);
}

TEST(DTypeTest, GgmlNumbersGoThereAndBack) {
  for (size_t i = 0; i < kNumDTypes; ++i) {
    const DTypeTraits& traits = Traits(static_cast<DType>(i));
    if (traits.ggml_type < 0) continue;
    EXPECT_EQ(DTypeFromGgml(static_cast<uint32_t>(traits.ggml_type)),
              traits.type);
  }
}

}  // namespace
}  // namespace muster

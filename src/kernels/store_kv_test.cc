#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/attention.h"
#include "kernels/dequantize.h"
#include "kernels/test_buffers.h"
#include "tensor/float16.h"

namespace muster::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::byte> Stored(KvType type, const std::vector<float>& x) {
  std::vector<std::byte> out(KvVectorBytes(type, x.size()));
  StoreKv(type, x.data(), x.size(), out.data());
  return out;
}

std::vector<float> ThereAndBackQ8(const std::vector<float>& x) {
  std::vector<float> out(x.size());
  Dequantize(DType::kQ8_0, Stored(KvType::kQ8, x).data(), x.size(), out.data());
  return out;
}

TEST(StoreKvTest, FloatsAreKept) {
  const std::vector<float> x = NormalFloats(80, 1);
  const std::vector<std::byte> stored = Stored(KvType::kF32, x);
  ASSERT_EQ(stored.size(), 80 * sizeof(float));
  EXPECT_EQ(std::memcmp(stored.data(), x.data(), stored.size()), 0);
}

TEST(StoreKvTest, HalvesAreRoundedToNearestEvenOnEveryInstructionSet) {
  std::vector<float> x = NormalFloats(1000, 2);
  for (float f = 1e-9f; f < 1e6f; f *= 1.17f) x.push_back(-f);
  x.insert(x.end(), {0.0f, -0.0f, kInfinity, -kInfinity, 65519.9f, 65520.0f,
                     1.0f + 0x1p-11f, 1.0f + 3 * 0x1p-11f, 0x1p-25f, 0x1.8p-25f,
                     std::numeric_limits<float>::denorm_min()});
  ForEachInstructionSet([&](const std::string&) {
    for (const size_t cut : {0, 1, 7, 15}) {
      const std::vector<float> part(x.begin(), x.end() - cut);
      const std::vector<std::byte> stored = Stored(KvType::kF16, part);
      for (size_t i = 0; i < part.size(); ++i) {
        uint16_t half;
        std::memcpy(&half, stored.data() + i * sizeof(half), sizeof(half));
        ASSERT_EQ(half, F32ToF16(part[i])) << part[i];
      }
    }
  });
}

TEST(StoreKvTest, Q8IsOffByHalfAStepAtMost) {
  for (const float deviation : {1e-3f, 1.0f, 300.0f}) {
    const std::vector<float> x = NormalFloats(256, 3, deviation);
    const std::vector<float> out = ThereAndBackQ8(x);
    for (size_t block = 0; block < 8; ++block) {
      float largest = 0;
      for (size_t i = 0; i < 32; ++i) {
        largest = std::max(largest, std::fabs(x[block * 32 + i]));
      }
      // The step is rounded to half precision, so that 127 steps may miss the
      // largest by 2^-11 of it (2^-25 where halves are subnormal).
      const float tolerance = largest / 127 * (0.5f + 0x1p-10f) +
                              largest * 0x1p-11f + 127 * 0x1p-25f;
      for (size_t i = 0; i < 32; ++i) {
        EXPECT_NEAR(out[block * 32 + i], x[block * 32 + i], tolerance);
      }
    }
  }
}

TEST(StoreKvTest, Q8BytesAreTheSameOnEveryInstructionSet) {
  std::vector<float> x = NormalFloats(512, 4);
  for (size_t i = 0; i < 32; ++i) x[i] *= 1e-7f;
  // Exact halves of a step, where rounding modes would differ.
  for (size_t i = 64; i < 96; ++i) x[i] = static_cast<float>(i) - 79.5f;
  x[64] = 127.0f;
  std::vector<std::byte> expected;
  ForEachInstructionSet([&](const std::string&) {
    const std::vector<std::byte> stored = Stored(KvType::kQ8, x);
    if (expected.empty()) expected = stored;
    EXPECT_EQ(stored, expected);
  });
  const std::byte* block = expected.data() + 2 * 34;
  EXPECT_EQ(static_cast<int8_t>(block[2 + 1]), -14);  // -14.5: to even
  EXPECT_EQ(static_cast<int8_t>(block[2 + 2]), -14);  // -13.5
}

// The smallest half stands for a scale 1.4 times as large.
TEST(StoreKvTest, Q8DoesNotWrapWhenTheScaleIsRoundedDown) {
  std::vector<float> x(32, 1.4f * 127 * 0x1p-24f);
  x[7] = -x[7];
  const std::vector<float> out = ThereAndBackQ8(x);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(out[i], (i == 7 ? -127 : 127) * 0x1p-24f);
  }
}

TEST(StoreKvTest, ABlockOfZerosIsZeros) {
  for (const float v : ThereAndBackQ8(std::vector<float>(32, 0.0f))) {
    EXPECT_EQ(v, 0.0f);
  }
}

// A model that makes NaN must give NaN, not undefined behaviour.
TEST(StoreKvTest, Q8KeepsABlockWithoutAScaleVisible) {
  for (const float bad : {kNan, kInfinity, -kInfinity, 3e38f}) {
    std::vector<float> x(64, 1.0f);
    x[5] = bad;
    const std::vector<float> out = ThereAndBackQ8(x);
    EXPECT_TRUE(std::isnan(out[0])) << bad;
    EXPECT_TRUE(std::isnan(out[5])) << bad;
    EXPECT_FALSE(std::isnan(out[32])) << bad;
  }
}

}  // namespace
}  // namespace muster::kernels

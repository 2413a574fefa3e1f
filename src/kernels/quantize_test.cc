#include "kernels/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "kernels/dequantize.h"

namespace muster::kernels {
namespace {

constexpr size_t kGroup = 16;

std::vector<float> Normal(size_t count, float deviation) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> x(count);
  for (float& value : x) value = normal(random);
  return x;
}

std::vector<std::byte> Blocks(DType type, const std::vector<float>& x) {
  std::vector<std::byte> blocks(SizeBytes(type, x.size()));
  Quantize(type, x.data(), x.size(), blocks.data());
  return blocks;
}

std::vector<float> RoundTrip(DType type, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  Dequantize(type, Blocks(type, x).data(), x.size(), y.data());
  return y;
}

double RmsError(const std::vector<float>& x, const std::vector<float>& y) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += std::pow(x[i] - y[i], 2);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// Each group's whole range without a search, with scales in float32, which no
// block has: from the smallest weight up for Q2_K; the largest at code -4 for
// Q3_K.
std::vector<float> Naive(DType type, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  for (size_t g = 0; g < x.size(); g += kGroup) {
    const auto [low, high] =
        std::minmax_element(x.begin() + g, x.begin() + g + kGroup);
    const float far = *high > -*low ? *high : *low;
    const float min = type == DType::kQ2_K ? *low : 0;
    const float scale = type == DType::kQ2_K ? (*high - *low) / 3 : -far / 4;
    for (size_t i = g; i < g + kGroup; ++i) {
      const float code = std::round((x[i] - min) / scale);
      y[i] = min + scale * std::min(code, 3.0f);
    }
  }
  return y;
}

class QuantizeTest : public ::testing::TestWithParam<DType> {};

TEST_P(QuantizeTest, ErrsLessThanNaiveRounding) {
  for (const float deviation : {1e-3f, 0.02f, 1.0f}) {
    const auto x = Normal(64 * 256, deviation);
    EXPECT_LT(RmsError(x, RoundTrip(GetParam(), x)),
              0.95 * RmsError(x, Naive(GetParam(), x)))
        << deviation;
  }
}

TEST_P(QuantizeTest, EachWeightComesBackInItsPlace) {
  // A weight that no other is near, in each place in turn.
  for (size_t at = 0; at < 256; ++at) {
    std::vector<float> x(256, 0.0f);
    x[at] = -3.0f;
    const auto y = RoundTrip(GetParam(), x);
    for (size_t i = 0; i < 256; ++i) {
      // float16's rounding of d, of a number that is 45 to 128 times d.
      ASSERT_NEAR(y[i], x[i], 3.0f / 1024) << at << ", " << i;
    }
  }
}

TEST_P(QuantizeTest, WhatTheBlocksCanSayComesBackWithLittleLoss) {
  const auto once = RoundTrip(GetParam(), Normal(8 * 256, 0.02f));
  const auto twice = RoundTrip(GetParam(), once);
  EXPECT_LT(RmsError(once, twice),
            0.1 * RmsError(once, Normal(8 * 256, 0.02f)));
}

TEST_P(QuantizeTest, ZerosAndWeightsThatAreNotFinite) {
  EXPECT_EQ(RoundTrip(GetParam(), std::vector<float>(256, 0.0f)),
            std::vector<float>(256, 0.0f));
  std::vector<float> x = Normal(256, 1);
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[77] = std::numeric_limits<float>::infinity();
  std::vector<float> without = x;
  without[3] = without[77] = 0;
  EXPECT_EQ(Blocks(GetParam(), x), Blocks(GetParam(), without));
  for (const float y : RoundTrip(GetParam(), std::vector<float>(256, 1e30f))) {
    EXPECT_TRUE(std::isfinite(y));
  }
}

INSTANTIATE_TEST_SUITE_P(AllTypes, QuantizeTest,
                         ::testing::Values(DType::kQ2_K, DType::kQ3_K),
                         [](const auto& param) {
                           return std::string(Name(param.param));
                         });

}  // namespace
}  // namespace muster::kernels

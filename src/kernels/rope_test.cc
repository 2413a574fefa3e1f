#include "kernels/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <numeric>

#include "kernels/test_buffers.h"

namespace muster::kernels {
namespace {

std::vector<double> InvFreq(size_t rope_dim, double theta) {
  std::vector<double> inv_freq;
  for (size_t i = 0; i < rope_dim; i += 2) {
    inv_freq.push_back(std::pow(
        theta, -static_cast<double>(i) / static_cast<double>(rope_dim)));
  }
  return inv_freq;
}

double Dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

TEST(RopeTableTest, HoldsCosineAndSineOfPositionTimesFrequency) {
  const RopeTable table({1.0, 0.01}, 1.0, 10);
  EXPECT_EQ(table.num_positions(), 10u);
  EXPECT_EQ(table.rope_dim(), 4u);
  EXPECT_EQ(table.cos(0)[0], 1.0f);
  EXPECT_EQ(table.sin(0)[1], 0.0f);
  EXPECT_EQ(table.cos(7)[0], static_cast<float>(std::cos(7.0)));
  EXPECT_EQ(table.sin(7)[1], static_cast<float>(std::sin(0.07)));
}

// In float the angle of position 131071 would be off by up to 2^-8 radians.
TEST(RopeTableTest, FarPositionsAreAsExactAsNearOnes) {
  const size_t far = 131071;
  const RopeTable table({0.7310585786300049, 1.0 / 3}, 1.0, far + 1);
  for (const size_t i : {0, 1}) {
    const long double angle =
        static_cast<long double>(far) * (i ? 1.0 / 3 : 0.7310585786300049);
    // Half an ulp of a float below 1, and the double angle's half ulp of 2^17.
    EXPECT_NEAR(table.cos(far)[i], static_cast<double>(std::cos(angle)),
                0x1p-25 + 0x1p-37);
    EXPECT_NEAR(table.sin(far)[i], static_cast<double>(std::sin(angle)),
                0x1p-25 + 0x1p-37);
  }
}

TEST(RopeTableTest, MagnitudeMultipliesBoth) {
  const RopeTable table({0.5}, 1.25, 4);
  EXPECT_EQ(table.cos(3)[0], static_cast<float>(std::cos(1.5) * 1.25));
  EXPECT_EQ(table.sin(3)[0], static_cast<float>(std::sin(1.5) * 1.25));
}

TEST(ApplyRopeTest, TurnsEachPairByItsAngle) {
  // A quarter turn a position: (a, b) -> (-b, a).
  const RopeTable table({std::numbers::pi / 2, 0.0}, 1.0, 2);
  std::vector<float> halves = {1, 2, 3, 4};
  ApplyRope(table, RopePairing::kHalves, 1, 1, 4, halves.data());
  EXPECT_NEAR(halves[0], -3, 1e-6);  // 1e-6: cos(pi / 2) as float, twice 3
  EXPECT_NEAR(halves[2], 1, 1e-6);
  EXPECT_EQ(halves[1], 2);
  EXPECT_EQ(halves[3], 4);
  std::vector<float> pairs = {1, 2, 3, 4};
  ApplyRope(table, RopePairing::kInterleaved, 1, 1, 4, pairs.data());
  EXPECT_NEAR(pairs[0], -2, 1e-6);
  EXPECT_NEAR(pairs[1], 1, 1e-6);
  EXPECT_EQ(pairs[2], 3);
  EXPECT_EQ(pairs[3], 4);
}

TEST(ApplyRopeTest, AgreesWithTheDefinitionInDouble) {
  for (const size_t dim : {16, 64, 80, 96, 128, 256}) {
    const std::vector<double> inv_freq = InvFreq(dim, 10000.0);
    const RopeTable table(inv_freq, 1.0, 5000);
    const size_t num_heads = 3, half = dim / 2;
    const std::vector<float> x = NormalFloats(num_heads * dim, 1);
    for (const size_t position : {0, 1, 17, 4999}) {
      std::vector<float> out = x;
      ApplyRope(table, RopePairing::kHalves, position, num_heads, dim,
                out.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t head = i / dim * dim, pair = i % half;
        const double a = x[head + pair], b = x[head + pair + half];
        const double angle = static_cast<double>(position) * inv_freq[pair];
        const double expected = i - head < half
                                    ? a * std::cos(angle) - b * std::sin(angle)
                                    : b * std::cos(angle) + a * std::sin(angle);
        // Each product: its table entry's rounding and its own; then a sum.
        ASSERT_NEAR(out[i], expected,
                    3 * kUnitRoundoff * (std::fabs(a) + std::fabs(b)));
      }
    }
  }
}

TEST(ApplyRopeTest, PairingsDifferOnlyInOrder) {
  const size_t dim = 96;
  const RopeTable table(InvFreq(dim, 1e6), 1.0, 100);
  const std::vector<float> x = NormalFloats(dim, 2);
  std::vector<float> halves(dim), pairs = x;
  for (size_t i = 0; i < dim / 2; ++i) {
    halves[i] = x[2 * i];
    halves[i + dim / 2] = x[2 * i + 1];
  }
  ApplyRope(table, RopePairing::kHalves, 99, 1, dim, halves.data());
  ApplyRope(table, RopePairing::kInterleaved, 99, 1, dim, pairs.data());
  for (size_t i = 0; i < dim / 2; ++i) {
    EXPECT_EQ(halves[i], pairs[2 * i]);
    EXPECT_EQ(halves[i + dim / 2], pairs[2 * i + 1]);
  }
}

TEST(ApplyRopeTest, WhatLiesBeyondRopeDimStays) {
  const RopeTable table(InvFreq(32, 10000.0), 1.0, 8);
  const std::vector<float> x = NormalFloats(2 * 128, 3);
  std::vector<float> out = x;
  ApplyRope(table, RopePairing::kHalves, 7, 2, 128, out.data());
  for (size_t i = 0; i < x.size(); ++i) {
    if (i % 128 >= 32) {
      EXPECT_EQ(out[i], x[i]);
    } else {
      EXPECT_NE(out[i], x[i]);
    }
  }
}

TEST(ApplyRopeTest, ScoresDependOnTheDistanceOnly) {
  const size_t dim = 64;
  const RopeTable table(InvFreq(dim, 10000.0), 1.0, 4000);
  const std::vector<float> q = NormalFloats(dim, 4), k = NormalFloats(dim, 5);
  const auto score = [&](size_t at_q, size_t at_k) {
    std::vector<float> turned_q = q, turned_k = k;
    ApplyRope(table, RopePairing::kHalves, at_q, 1, dim, turned_q.data());
    ApplyRope(table, RopePairing::kHalves, at_k, 1, dim, turned_k.data());
    return Dot(turned_q, turned_k);
  };
  // A turned vector is off by 3 roundoffs of |a| + |b|, at most 1.5 |pair|
  // each.
  const double tolerance =
      2 * 6 * kUnitRoundoff * std::sqrt(Dot(q, q) * Dot(k, k));
  EXPECT_NEAR(score(13, 3), score(3999, 3989), tolerance);
}

TEST(ApplyRopeTest, BitsDoNotDependOnAlignment) {
  const RopeTable table(InvFreq(80, 10000.0), 1.0, 50);
  const std::vector<float> x = NormalFloats(160, 6);
  std::vector<uint32_t> expected;
  for (const size_t offset : kOffsets) {
    GuardedFloats heads(160, offset);
    std::ranges::copy(x, heads.data());
    ApplyRope(table, RopePairing::kHalves, 49, 2, 80, heads.data());
    if (expected.empty()) expected = Bits(heads.span());
    EXPECT_EQ(Bits(heads.span()), expected);
  }
}

}  // namespace
}  // namespace muster::kernels

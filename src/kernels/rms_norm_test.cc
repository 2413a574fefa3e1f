#include "kernels/rms_norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/test_buffers.h"

namespace muster::kernels {
namespace {

constexpr float kEps = 1e-5f;

// Roundings on the way to one element, in units of roundoff, all of positive
// terms: a square and dim / 16 additions in its lane, 4 across lanes, the
// division and eps; the root halves their sum. Then root, inverse, two
// products, and the reference's own rounding.
double Tolerance(size_t dim) {
  const double sum = static_cast<double>(dim) / 16 + 1 + 4 + 2;
  return (sum / 2 + 5) * kUnitRoundoff;
}

void ExpectNear(std::span<const float> actual, std::span<const float> expected,
                double relative) {
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i],
                std::fabs(expected[i]) * relative + 0x1p-149)
        << "at " << i;
  }
}

TEST(RmsNormTest, AgreesWithTheDefinitionAtAnyLengthAndAlignment) {
  for (const size_t dim : kLengths) {
    const std::vector<float> x = NormalFloats(dim, 1, 3.0f);
    const std::vector<float> scale = NormalFloats(dim, 2);
    std::vector<float> expected(dim);
    RmsNormReference(x.data(), scale.data(), kEps, dim, expected.data());
    ForEachInstructionSet([&](const std::string&) {
      for (const size_t offset : kOffsets) {
        GuardedFloats in(dim, offset), by(dim, offset / 2),
            out(dim, 15 - offset);
        std::ranges::copy(x, in.data());
        std::ranges::copy(scale, by.data());
        RmsNorm(in.data(), by.data(), kEps, dim, out.data());
        ExpectNear(out.span(), expected, Tolerance(dim));
      }
    });
  }
}

TEST(RmsNormTest, BitsDependOnTheDataOnly) {
  for (const size_t dim : kLengths) {
    const std::vector<float> x = NormalFloats(dim, 3);
    const std::vector<float> scale = NormalFloats(dim, 4);
    ExpectSameBits([&] {
      std::vector<float> all;
      for (const size_t offset : kOffsets) {
        GuardedFloats in(dim, offset), out(dim, offset / 3);
        std::ranges::copy(x, in.data());
        RmsNorm(in.data(), scale.data(), kEps, dim, out.data());
        EXPECT_TRUE(all.empty() ||
                    std::equal(out.data(), out.data() + dim, all.data()));
        all.insert(all.end(), out.data(), out.data() + dim);
      }
      return all;
    });
  }
}

TEST(RmsNormTest, TheOutputMayBeTheInput) {
  const std::vector<float> x = NormalFloats(77, 5);
  const std::vector<float> scale = NormalFloats(77, 6);
  std::vector<float> apart(77), in_place = x;
  RmsNorm(x.data(), scale.data(), kEps, 77, apart.data());
  RmsNorm(in_place.data(), scale.data(), kEps, 77, in_place.data());
  EXPECT_EQ(Bits(in_place), Bits(apart));
}

TEST(RmsNormTest, ZerosStayZerosAndTinyRowsAreDampedByEps) {
  std::vector<float> x(64, 0.0f), out(64);
  const std::vector<float> scale(64, 1.0f);
  RmsNorm(x.data(), scale.data(), kEps, 64, out.data());
  for (const float v : out) EXPECT_EQ(v, 0.0f);
  std::ranges::fill(x, 1e-6f);
  RmsNorm(x.data(), scale.data(), kEps, 64, out.data());
  for (const float v : out) {
    EXPECT_NEAR(v, 1e-6 / std::sqrt(1e-12 + 1e-5), 3.2e-4 * Tolerance(64));
  }
}

}  // namespace
}  // namespace muster::kernels

#include "kernels/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/test_buffers.h"

namespace muster::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// exp is within 2 ulp, an ulp at most two roundoffs.
constexpr double kExpError = 4 * kUnitRoundoff;

// exp(-z), 1 + e, the quotient, the product, the reference's rounding.
constexpr double kSiluMulError = kExpError + 4 * kUnitRoundoff;

double SiluMulInDouble(float gate, float up) {
  return gate / (1 + std::exp(-double{gate})) * up;
}

// Where exp(-z) is infinite in float the result is 0; it is below this.
constexpr double kSiluUnderflow = 100 * 0x1p-127;

TEST(SiluMulTest, AgreesWithTheDefinitionAtAnyLengthAndAlignment) {
  for (const size_t n : kLengths) {
    const std::vector<float> gate = NormalFloats(n, 1, 20.0f);
    const std::vector<float> up = NormalFloats(n, 2);
    ForEachInstructionSet([&](const std::string&) {
      for (const size_t offset : kOffsets) {
        GuardedFloats a(n, offset), b(n, offset / 2), out(n, 15 - offset);
        std::ranges::copy(gate, a.data());
        std::ranges::copy(up, b.data());
        SiluMul(a.data(), b.data(), n, out.data());
        for (size_t i = 0; i < n; ++i) {
          const double expected = SiluMulInDouble(gate[i], up[i]);
          ASSERT_NEAR(out[i], expected,
                      std::fabs(expected) * kSiluMulError +
                          std::fabs(up[i]) * kSiluUnderflow)
              << gate[i] << " " << up[i];
        }
      }
    });
  }
}

TEST(SiluMulTest, HoldsItsErrorOverTheWholeRangeOfGates) {
  std::vector<float> gate, up, out;
  for (float z = -120.0f; z < 120.0f; z += 0.0137f) gate.push_back(z);
  for (float z = 1e-30f; z < 1e30f; z *= 7.3f) {
    gate.push_back(z);
    gate.push_back(-z);
  }
  up.assign(gate.size(), 1.0f);
  out.resize(gate.size());
  ForEachInstructionSet([&](const std::string&) {
    SiluMul(gate.data(), up.data(), gate.size(), out.data());
    for (size_t i = 0; i < gate.size(); ++i) {
      const double expected = SiluMulInDouble(gate[i], 1.0f);
      ASSERT_NEAR(out[i], expected,
                  std::fabs(expected) * kSiluMulError + kSiluUnderflow)
          << gate[i];
    }
  });
}

TEST(SiluMulTest, TheOutputMayBeEitherInput) {
  const std::vector<float> gate = NormalFloats(37, 3);
  const std::vector<float> up = NormalFloats(37, 4);
  std::vector<float> apart(37), in_gate = gate, in_up = up;
  SiluMul(gate.data(), up.data(), 37, apart.data());
  SiluMul(in_gate.data(), up.data(), 37, in_gate.data());
  SiluMul(gate.data(), in_up.data(), 37, in_up.data());
  EXPECT_EQ(Bits(in_gate), Bits(apart));
  EXPECT_EQ(Bits(in_up), Bits(apart));
}

TEST(SigmoidTest, AgreesWithTheDefinitionOverTheWholeRange) {
  std::vector<float> x = {0.0f, -0.0f, kInfinity, -kInfinity, 3e38f, -3e38f};
  for (float z = -120.0f; z < 120.0f; z += 0.0731f) x.push_back(z);
  ForEachInstructionSet([&](const std::string&) {
    GuardedFloats out(x.size(), 3);
    std::ranges::copy(x, out.data());
    Sigmoid(out.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = 1 / (1 + std::exp(-double{x[i]}));
      // exp(-x), 1 + e, the quotient; 0 where exp(-x) is infinite in float.
      ASSERT_NEAR(out[i], expected,
                  expected * (kExpError + 2 * kUnitRoundoff) + 0x1p-127)
          << x[i];
    }
  });
}

TEST(AddTest, IsOneFloatAdditionEach) {
  for (const size_t n : kLengths) {
    const std::vector<float> x = NormalFloats(n, 5);
    const std::vector<float> acc = NormalFloats(n, 6);
    ForEachInstructionSet([&](const std::string&) {
      for (const size_t offset : kOffsets) {
        GuardedFloats in(n, offset), out(n, 15 - offset);
        std::ranges::copy(x, in.data());
        std::ranges::copy(acc, out.data());
        Add(in.data(), n, out.data());
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(out[i], acc[i] + x[i]);
      }
    });
  }
}

TEST(AddScaledTest, RoundsOnce) {
  for (const size_t n : kLengths) {
    const std::vector<float> x = NormalFloats(n, 7);
    const std::vector<float> acc = NormalFloats(n, 8);
    ForEachInstructionSet([&](const std::string& name) {
      for (const size_t offset : kOffsets) {
        GuardedFloats in(n, offset), out(n, 15 - offset);
        std::ranges::copy(x, in.data());
        std::ranges::copy(acc, out.data());
        AddScaled(in.data(), 0.37f, n, out.data());
        for (size_t i = 0; i < n; ++i) {
          const float expected = name == "baseline"
                                     ? acc[i] + x[i] * 0.37f
                                     : std::fma(x[i], 0.37f, acc[i]);
          ASSERT_EQ(out[i], expected);
        }
      }
    });
  }
}

TEST(SoftmaxTest, AgreesWithTheDefinitionAtAnyLengthAndAlignment) {
  for (const size_t n : kLengths) {
    const std::vector<float> x = NormalFloats(n, 9, 5.0f);
    const double max = *std::ranges::max_element(x);
    const double range = max - *std::ranges::min_element(x);
    std::vector<double> expected;
    for (const float v : x) expected.push_back(std::exp(v - max));
    const double sum = std::accumulate(expected.begin(), expected.end(), 0.0);
    // Both the term and the sum: exp's own error and x - max, off by a roundoff
    // of at most `range`. Then additions in a lane and across, the quotient.
    const double relative =
        2 * (kExpError + range * kUnitRoundoff) +
        (static_cast<double>(n) / 16 + 4 + 2) * kUnitRoundoff;
    ForEachInstructionSet([&](const std::string&) {
      for (const size_t offset : kOffsets) {
        GuardedFloats out(n, offset);
        std::ranges::copy(x, out.data());
        Softmax(out.data(), n);
        for (size_t i = 0; i < n; ++i) {
          const double share = expected[i] / sum;
          ASSERT_NEAR(out[i], share, share * relative) << "at " << i;
        }
      }
    });
  }
}

TEST(SoftmaxTest, MinusInfinityHasNoShare) {
  for (const size_t n : {2, 16, 17, 40}) {
    std::vector<float> x(n, -kInfinity);
    x[n - 1] = -5.0f;
    Softmax(x.data(), n);
    for (size_t i = 0; i + 1 < n; ++i) EXPECT_EQ(x[i], 0.0f);
    EXPECT_EQ(x[n - 1], 1.0f);
  }
}

TEST(SoftmaxTest, LargeValuesDoNotOverflow) {
  std::vector<float> x = {3e38f, -3e38f, 3e38f};
  Softmax(x.data(), x.size());
  EXPECT_EQ(x, (std::vector<float>{0.5f, 0.0f, 0.5f}));
}

TEST(ElementwiseTest, BitsAreTheSameOnEveryInstructionSet) {
  for (const size_t n : kLengths) {
    const std::vector<float> a = NormalFloats(n, 10, 30.0f);
    const std::vector<float> b = NormalFloats(n, 11);
    ExpectSameBits([&] {
      std::vector<float> all, out(n);
      SiluMul(a.data(), b.data(), n, out.data());
      all = out;
      Sigmoid(out.data(), n);
      Softmax(out.data(), n);
      all.insert(all.end(), out.begin(), out.end());
      AddScaled(a.data(), 0.1f, n, out.data());
      all.insert(all.end(), out.begin(), out.end());
      return all;
    });
  }
}

TEST(ElementwiseTest, BitsDoNotDependOnAlignment) {
  const size_t n = 133;
  const std::vector<float> x = NormalFloats(n, 12);
  std::vector<uint32_t> expected;
  for (const size_t offset : kOffsets) {
    GuardedFloats out(n, offset);
    std::ranges::copy(x, out.data());
    Softmax(out.data(), n);
    SiluMul(out.data(), x.data(), n, out.data());
    if (expected.empty()) expected = Bits(out.span());
    EXPECT_EQ(Bits(out.span()), expected);
  }
}

}  // namespace
}  // namespace muster::kernels

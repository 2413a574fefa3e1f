#include "kernels/matmul.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/dequantize.h"
#include "kernels/kernel_test.h"
#include "kernels/pack_panels.h"
#include "kernels/products.h"
#include "kernels/test_buffers.h"
#include "tensor/float16.h"

namespace muster::kernels {
namespace {

// Offsets of the float16 scales in a block; the rest may be any bits.
std::vector<size_t> ScaleOffsets(DType type) {
  switch (type) {
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {0, 2};
    case DType::kQ2_K:
      return {80, 82};
    case DType::kQ3_K:
      return {108};
    case DType::kQ6_K:
      return {208};
    case DType::kMXFP4:
      return {};
    default:
      return {0};
  }
}

// Random bits with scales of both signs around 0.01.
std::vector<std::byte> RandomWeights(DType type, size_t count,
                                     std::mt19937& rng) {
  std::vector<std::byte> bytes(SizeBytes(type, count));
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng());
  std::uniform_real_distribution<float> uniform(-0.02f, 0.02f);
  const DTypeTraits& traits = Traits(type);
  for (size_t at = 0; at < bytes.size(); at += traits.block_bytes) {
    if (type == DType::kF32) {
      const float value = uniform(rng);
      std::memcpy(&bytes[at], &value, sizeof(value));
    } else if (type == DType::kBF16) {
      const auto half =
          static_cast<uint16_t>(std::bit_cast<uint32_t>(uniform(rng)) >> 16);
      std::memcpy(&bytes[at], &half, sizeof(half));
    } else if (type == DType::kF8E4M3) {
      bytes[at] = static_cast<std::byte>(rng() % 0x70);
    } else if (type == DType::kMXFP4) {
      bytes[at] = static_cast<std::byte>(118 + rng() % 8);
    } else {
      for (const size_t offset : ScaleOffsets(type)) {
        const uint16_t half = F32ToF16(uniform(rng));
        std::memcpy(&bytes[at + offset], &half, sizeof(half));
      }
    }
  }
  return bytes;
}

struct Problem {
  Problem(DType type, size_t num_rows, size_t cols, size_t num_tokens,
          unsigned seed)
      : rng(seed),
        bytes(RandomWeights(type, num_rows * cols, rng)),
        w{.type = type, .data = bytes.data(), .rows = num_rows, .cols = cols},
        panels(HasPanels(type) ? NumPanels(num_rows) * PanelBytes(type, cols)
                               : 0),
        x(num_tokens * cols),
        tokens(num_tokens) {
    std::normal_distribution<float> normal;
    for (float& v : x) v = normal(rng);
    if (HasPanels(type)) {
      PackPanels(w, panels.data());
      w.layout = Layout::kPanels;
      w.data = panels.data();
    }
    std::iota(tokens.begin(), tokens.end(), 0u);
    view = activations.Set(x.data(), num_tokens, cols, FormRead(type), pool);
  }

  std::vector<float> Multiply() {
    std::vector<float> out(tokens.size() * w.rows);
    MatMulRows(w, 0, w.rows, view, tokens, out.data(), w.rows);
    return out;
  }

  // Error that rounding may cause in one element:
  //  - activations: half a step of max|x| / 127 for each |w| (quantised only);
  //  - activations of BF16 weights: 2^-8 of each, half a step of 8 bits;
  //  - floats: each of the cols additions and the scales, 2^-24 of the sum of
  //    magnitudes, three roundings an element.
  float Tolerance(size_t row, size_t token) {
    std::vector<float> decoded(w.cols);
    DequantizeRow(w, row, decoded.data());
    const float* in = x.data() + token * w.cols;
    double magnitude = 0, quantized = 0;
    for (size_t c = 0; c < w.cols; c += 16) {
      const size_t end = std::min(w.cols, c + 16);
      float largest = 0;
      for (size_t g = c / 32 * 32; g < std::min(w.cols, c / 32 * 32 + 32);
           ++g) {
        largest = std::max(largest, std::abs(in[g]));
      }
      for (size_t i = c; i < end; ++i) {
        magnitude += std::abs(double{decoded[i]} * in[i]);
        quantized += std::abs(double{decoded[i]}) * largest / 254;
      }
    }
    double tolerance = magnitude * (static_cast<double>(w.cols) + 3) * 0x1p-24;
    if (w.type == DType::kBF16) tolerance += magnitude * 0x1p-8;
    if (IsQuantized(w.type)) {
      // Types with mins sum |scale q| and |min| apart: bounded by four times.
      tolerance = 4 * tolerance + quantized * 1.01 + 1e-6;
    }
    return static_cast<float>(tolerance);
  }

  std::mt19937 rng;
  std::vector<std::byte> bytes;
  WeightView w;
  AlignedBuffer panels;
  std::vector<float> x;
  std::vector<uint32_t> tokens;
  ThreadPool pool{1};
  Activations activations;
  ActivationView view;
};

class MatMulTest : public ::testing::TestWithParam<DType> {
 protected:
  // Lengths in elements: below, at and beyond a panel's block, and ragged.
  std::vector<size_t> Lengths() const {
    if (Traits(GetParam()).block_elements == 256) return {256, 512, 1280};
    if (Traits(GetParam()).block_elements == 32)
      return {32, 96, 256, 288, 1088};
    return {1, 15, 16, 17, 63, 64, 65, 256, 333};
  }
};

TEST_P(MatMulTest, AgreesWithTheReferenceOnEveryInstructionSet) {
  ForEachInstructionSet([&](const std::string&) {
    unsigned seed = 1;
    for (const size_t cols : Lengths()) {
      for (const size_t num_rows : {1, 16, 21}) {
        for (const size_t num_tokens : {1, 2, 13}) {
          Problem problem(GetParam(), num_rows, cols, num_tokens, seed++);
          const auto actual = problem.Multiply();
          std::vector<float> expected(actual.size());
          MatMulReference(problem.w, problem.view, expected.data());
          for (size_t t = 0; t < num_tokens; ++t) {
            for (size_t r = 0; r < num_rows; ++r) {
              ASSERT_NEAR(actual[t * num_rows + r], expected[t * num_rows + r],
                          problem.Tolerance(r, t))
                  << cols << " columns, row " << r << ", token " << t;
            }
          }
        }
      }
    }
  });
}

TEST_P(MatMulTest, BitsAreTheSameOnEveryInstructionSet) {
  for (const size_t num_tokens : {1, 2, 11}) {
    Problem problem(GetParam(), 37, Lengths().back(), num_tokens, 5);
    std::vector<float> first;
    ForEachInstructionSet([&](const std::string& name) {
      // With float weights its multiply-adds round twice.
      if (name == "baseline" && !HasPanels(GetParam())) return;
      const auto out = problem.Multiply();
      if (first.empty()) first = out;
      EXPECT_EQ(out, first);
    });
  }
}

TEST_P(MatMulTest, BitsDoNotDependOnTheBatchOrTheSplitOfRows) {
  constexpr size_t kRows = 41, kTokens = 19;
  Problem problem(GetParam(), kRows, Lengths().back(), kTokens, 9);
  const auto together = problem.Multiply();
  for (uint32_t token = 0; token < kTokens; ++token) {
    std::vector<float> alone(kRows, -1.0f);
    for (const size_t split : {0, 16, 32}) {
      MatMulRows(problem.w, 0, split, problem.view, {&token, 1}, alone.data(),
                 kRows);
      MatMulRows(problem.w, split, kRows, problem.view, {&token, 1},
                 alone.data() + split, kRows);
      for (size_t r = 0; r < kRows; ++r) {
        ASSERT_EQ(alone[r], together[token * kRows + r]) << "token " << token;
      }
    }
  }
}

// So many tokens with so long rows are more than a core's cache keeps packed.
TEST_P(MatMulTest, BitsDoNotDependOnHowManyTokensFitTheCache) {
  constexpr size_t kRows = 17, kCols = 8192, kTokens = 70;
  Problem problem(GetParam(), kRows, kCols, kTokens, 11);
  ForEachInstructionSet([&](const std::string&) {
    const auto together = problem.Multiply();
    for (const uint32_t token : {0u, 31u, 32u, 33u, 34u, 63u, 64u, 69u}) {
      std::vector<float> alone(kRows);
      MatMulRows(problem.w, 0, kRows, problem.view, {&token, 1}, alone.data(),
                 kRows);
      for (size_t r = 0; r < kRows; ++r) {
        ASSERT_EQ(alone[r], together[token * kRows + r]) << "token " << token;
      }
    }
  });
}

TEST_P(MatMulTest, PanelsDecodeToTheBitsOfTheBlocksTheyWerePackedFrom) {
  if (!HasPanels(GetParam())) GTEST_SKIP() << "kept in rows";
  ForEachInstructionSet([&](const std::string&) {
    for (const size_t cols : Lengths()) {
      for (const size_t num_rows : {1, 16, 19}) {
        Problem problem(GetParam(), num_rows, cols, 1, 3);
        std::vector<float> expected(cols), actual(cols);
        for (size_t r = 0; r < num_rows; ++r) {
          const size_t row_bytes = SizeBytes(GetParam(), cols);
          Dequantize(GetParam(), problem.bytes.data() + r * row_bytes, cols,
                     expected.data());
          DequantizeRow(problem.w, r, actual.data());
          ASSERT_EQ(Bits(actual), Bits(expected)) << "row " << r;
        }
      }
    }
  });
}

TEST_P(MatMulTest, TokensMayBeAnyRowsInAnyOrder) {
  Problem problem(GetParam(), 3, Lengths().back(), 6, 11);
  const auto all = problem.Multiply();
  const std::vector<uint32_t> chosen = {5, 0, 3, 3, 1};
  std::vector<float> out(chosen.size() * 3);
  MatMulRows(problem.w, 0, 3, problem.view, chosen, out.data(), 3);
  for (size_t i = 0; i < chosen.size(); ++i) {
    for (size_t r = 0; r < 3; ++r) {
      EXPECT_EQ(out[i * 3 + r], all[chosen[i] * 3 + r]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllTypes, MatMulTest,
    ::testing::Values(DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3,
                      DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
                      DType::kQ5_1, DType::kQ2_K, DType::kQ3_K, DType::kQ4_K,
                      DType::kQ5_K, DType::kQ6_K, DType::kIQ4_NL,
                      DType::kIQ4_XS, DType::kMXFP4),
    [](const auto& param) { return std::string(Name(param.param)); });

TEST(ActivationsTest, EachElementIsWithinHalfAStepAndSumsAreExact) {
  ForEachInstructionSet([](const std::string&) {
    std::mt19937 rng(2);
    std::normal_distribution<float> normal(0.0f, 3.0f);
    ThreadPool pool(2);
    const size_t rows = 3, cols = 288;
    std::vector<float> x(rows * cols);
    for (float& v : x) v = normal(rng);
    std::fill_n(x.begin() + 32, 32, 0.0f);  // a group of zeros
    Activations activations;
    const ActivationView view =
        activations.Set(x.data(), rows, cols, {.groups = true}, pool);
    ASSERT_EQ(view.num_groups, 10u);  // padded to an even number
    EXPECT_EQ(view.groups[1].scale, 0.0f);
    for (size_t r = 0; r < rows; ++r) {
      EXPECT_EQ(view.row(r)[9].scale, 0.0f);
      EXPECT_EQ(view.row(r)[9].minus_sum, 0);
      for (size_t g = 0; g < cols / 32; ++g) {
        const ActivationGroup& group = view.row(r)[g];
        for (size_t i = 0; i < 32; ++i) {
          ASSERT_NEAR(group.scale * group.q[i], x[r * cols + g * 32 + i],
                      group.scale * 0.5001f);
        }
        const int low = std::accumulate(group.q, group.q + 16, 0);
        const int high = std::accumulate(group.q + 16, group.q + 32, 0);
        EXPECT_EQ(group.minus_half_sums[0], -low);
        EXPECT_EQ(group.minus_half_sums[1], -high);
        EXPECT_EQ(group.minus_sum, -(low + high));
        EXPECT_EQ(group.scaled_sum,
                  group.scale * static_cast<float>(low + high));
        EXPECT_EQ(group.half_scaled_sums[1],
                  group.scale * static_cast<float>(high));
      }
    }
  });
}

TEST(ActivationsTest, WhatIsNotFiniteMakesItsGroupNanAndNoOther) {
  ForEachInstructionSet([](const std::string&) {
    ThreadPool pool(1);
    for (const float bad : {std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x(96, 1.0f);
      x[40] = bad;
      Activations activations;
      const ActivationView view =
          activations.Set(x.data(), 1, 96, {.groups = true}, pool);
      EXPECT_FALSE(std::isnan(view.groups[0].scale));
      EXPECT_TRUE(std::isnan(view.groups[1].scale));
      EXPECT_FALSE(std::isnan(view.groups[2].scale));
    }
  });
}

TEST(ProductRunnerTest, AllProductsOfARegionAreDoneForAnyThreadCount) {
  Problem a(DType::kQ8_0, 100, 96, 3, 21), b(DType::kQ4_K, 33, 256, 3, 22);
  const auto expected_a = a.Multiply(), expected_b = b.Multiply();
  for (const size_t threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    std::vector<float> out_a(300), out_b(99);
    const Product products[] = {{&a.w, &a.view, a.tokens, out_a.data(), 100},
                                {&b.w, &b.view, b.tokens, out_b.data(), 33}};
    ProductRunner runner;
    runner.Run(products, pool);
    EXPECT_EQ(out_a, expected_a);
    EXPECT_EQ(out_b, expected_b);
  }
}

TEST(InstructionSetTest, UnknownNamesAreRefusedWithTheListOfKnownOnes) {
  const Status status = ForceInstructionSet("avx1024");
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("avx2"), std::string::npos);
}

}  // namespace
}  // namespace muster::kernels

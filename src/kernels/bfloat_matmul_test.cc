// What matmul_test.cc does not: bits of products with BF16 weights against a
// reference of their own, and numbers at the ends of a float's range.
#include "kernels/bfloat_matmul.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel_test.h"
#include "kernels/matmul.h"
#include "kernels/pack_panels.h"
#include "kernels/test_buffers.h"
#include "tensor/aligned_buffer.h"
#include "tensor/float16.h"

namespace muster::kernels {
namespace {

constexpr float kSmallestNormal = 0x1p-126f;

float FlushedInput(float x) {
  return std::abs(x) < kSmallestNormal ? std::copysign(0.0f, x) : x;
}

// a * b + c, rounded to odd in 64 bits: rounding that to 24 bits gives what one
// rounding would.
long double MulAddToOdd(float a, float b, float c) {
  const long double product = static_cast<long double>(a) * b;  // exact
  const long double sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const long double back = sum - product;
  const long double error = (product - (sum - back)) + (c - back);
  uint64_t mantissa;
  std::memcpy(&mantissa, &sum, sizeof(mantissa));
  if (error == 0 || (mantissa & 1) != 0) return sum;
  return std::nextafter(sum, error > 0 ? HUGE_VALL : -HUGE_VALL);
}

// fma where numbers below 2^-126 are zeros; results are judged after rounding
// to 24 bits, as processors do.
float FlushedMulAdd(float a, float b, float c) {
  const long double exact =
      MulAddToOdd(FlushedInput(a), FlushedInput(b), FlushedInput(c));
  const auto scaled = static_cast<float>(exact * 0x1p64L);
  if (std::abs(exact) < 0x1p-120L) {
    return std::abs(scaled) < 0x1p-62f ? std::copysign(0.0f, scaled)
                                       : static_cast<float>(scaled * 0x1p-64L);
  }
  return static_cast<float>(exact);
}

float FlushedAdd(float a, float b) { return FlushedMulAdd(a, 1.0f, b); }

// The order that bfloat_dot.h defines, on BF16 bits.
float ReferenceDot(const std::vector<uint16_t>& w,
                   const std::vector<uint16_t>& x) {
  float sums[2] = {};
  const size_t padded = (w.size() + 31) / 32 * 32;
  const auto at = [](const std::vector<uint16_t>& v, size_t c) {
    return c < v.size() ? BF16ToF32(v[c]) : 0.0f;
  };
  for (size_t pair = 0; pair < padded / 2; ++pair) {
    float& sum = sums[pair % 2];
    sum = FlushedMulAdd(at(w, 2 * pair + 1), at(x, 2 * pair + 1), sum);
    sum = FlushedMulAdd(at(w, 2 * pair), at(x, 2 * pair), sum);
  }
  return FlushedAdd(sums[0], sums[1]);
}

// BF16 of both signs with exponents in [low, low + span).
std::vector<uint16_t> RandomBFloats(size_t count, int low, int span,
                                    std::mt19937& rng) {
  std::vector<uint16_t> out(count);
  for (uint16_t& word : out) {
    const auto exponent = low + static_cast<int>(rng() % span);
    word = static_cast<uint16_t>((rng() & 0x807F) | exponent << 7);
  }
  return out;
}

struct Exponents {
  const char* what;
  int low, span;
};
constexpr Exponents kExponents[] = {
    {"ordinary", 115, 12},
    // Products and sums around 2^-126: biased 63 + 64 - 127 = 0.
    {"sums around the smallest float", 58, 10},
    {"denormal inputs and their neighbours", 0, 3},
    {"any", 0, 255},
    {"sums beyond the largest float", 188, 8},
};

// Of one row and several tokens.
struct RowProblem {
  RowProblem(size_t cols, size_t num_tokens, const Exponents& exponents,
             std::mt19937& rng)
      : row(RandomBFloats(cols, exponents.low, exponents.span, rng)),
        panel(PanelBytes(DType::kBF16, cols)) {
    PackPanel(DType::kBF16, reinterpret_cast<const std::byte*>(row.data()), 1,
              cols, panel.data());
    w = {.type = DType::kBF16,
         .layout = Layout::kPanels,
         .data = panel.data(),
         .rows = 1,
         .cols = cols};
    for (size_t t = 0; t < num_tokens; ++t) {
      tokens.push_back(static_cast<uint32_t>(t));
      x.push_back(RandomBFloats(cols, exponents.low, exponents.span, rng));
      for (const uint16_t word : x.back()) floats.push_back(BF16ToF32(word));
    }
    view = activations.Set(floats.data(), num_tokens, cols, {.bfloats = true},
                           pool);
  }

  std::vector<float> Multiply() const {
    std::vector<float> out(tokens.size());
    MatMulRows(w, 0, 1, view, tokens, out.data(), 1);
    return out;
  }

  ThreadPool pool{1};
  std::vector<uint16_t> row;
  AlignedBuffer panel;
  WeightView w;
  std::vector<std::vector<uint16_t>> x;
  std::vector<float> floats;
  std::vector<uint32_t> tokens;
  Activations activations;
  ActivationView view;
};

TEST(BFloatMatMulTest, EveryBitIsTheReferencesAtBothEndsOfAFloatsRange) {
  ForEachInstructionSet([](const std::string&) {
    std::mt19937 rng(3);
    for (const Exponents& exponents : kExponents) {
      for (const size_t cols : {1, 2, 3, 31, 32, 33, 62, 200, 1100}) {
        const RowProblem problem(cols, 11, exponents, rng);
        const std::vector<float> out = problem.Multiply();
        for (size_t t = 0; t < out.size(); ++t) {
          const float expected = ReferenceDot(problem.row, problem.x[t]);
          ASSERT_TRUE((std::isnan(out[t]) && std::isnan(expected)) ||
                      Bits({&out[t], 1}) == Bits({&expected, 1}))
              << exponents.what << ", " << cols << " columns, token " << t
              << ": " << out[t] << ", expected " << expected;
        }
      }
    }
  });
}

TEST(BFloatMatMulTest, DenormalsOfTheCallerAreLeftAlone) {
  const unsigned before = _mm_getcsr();
  std::mt19937 rng(4);
  const RowProblem problem(64, 2, kExponents[0], rng);
  ForEachInstructionSet([&](const std::string&) {
    problem.Multiply();
    EXPECT_EQ(_mm_getcsr() & 0xFFC0u, before & 0xFFC0u);
  });
}

TEST(BFloatActivationsTest, VectorsRoundAsSingleNumbersDo) {
  ForEachInstructionSet([](const std::string&) {
    std::mt19937 rng(5);
    for (const size_t n : kLengths) {
      std::vector<float> x(n);
      for (float& v : x) v = std::bit_cast<float>(static_cast<uint32_t>(rng()));
      x[n / 2] =
          std::bit_cast<float>(0x7F800001u);  // NaN whose high bits are 0
      x[n / 3] = std::bit_cast<float>(0x3F808000u);  // a tie
      std::vector<uint16_t> out(n);
      RoundToBFloats(x.data(), n, out.data());
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(out[i], F32ToBF16(x[i])) << i;
    }
  });
}

TEST(BFloatActivationsTest, RowsArePaddedWithZerosToWhatAPanelReads) {
  ThreadPool pool(1);
  const std::vector<float> ones(3 * 64, 1.0f);
  Activations activations;
  activations.Set(ones.data(), 3, 64, {.bfloats = true}, pool);
  const ActivationView view =
      activations.Set(ones.data(), 3, 33, {.bfloats = true}, pool);
  for (size_t row = 0; row < 3; ++row) {
    EXPECT_EQ(view.bfloat_row(row)[32], 0x3F80);
    for (size_t c = 33; c < 64; ++c) EXPECT_EQ(view.bfloat_row(row)[c], 0);
  }
}

}  // namespace
}  // namespace muster::kernels

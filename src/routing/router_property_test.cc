// What holds for every router and every logits.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/test_buffers.h"
#include "routing/router.h"

namespace muster::routing {
namespace {

using kernels::ExpectSameBits;
using kernels::kUnitRoundoff;
using kernels::NormalFloats;

struct Shape {
  RouterConfig config;
  bool biased = false;
};

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const uint32_t num_experts : {1u, 2u, 8u, 60u, 64u, 128u, 257u, 896u}) {
    for (const uint32_t top_k : {1u, 2u, 8u, num_experts}) {
      if (top_k > num_experts) continue;
      for (int bits = 0; bits < 8; ++bits) {
        shapes.push_back(
            {.config = {.num_experts = num_experts,
                        .top_k = top_k,
                        .gating = bits & 1 ? GatingFunction::kSigmoid
                                           : GatingFunction::kSoftmax,
                        .normalize_top_k = (bits & 2) != 0,
                        .scale = bits & 2 ? 2.5f : 1.0f},
             .biased = (bits & 4) != 0});
      }
    }
  }
  return shapes;
}

constexpr size_t kTokens = 5;

// Bias and logits of a shape, and what Route makes of them.
struct Routed {
  explicit Routed(const Shape& shape, float deviation = 2.0f)
      : config(shape.config),
        logits(NormalFloats(kTokens * config.num_experts, 1, deviation)) {
    if (shape.biased) bias = NormalFloats(config.num_experts, 2, 0.3f);
    Again();
  }
  void Again() {
    Route(config, logits.data(), bias.empty() ? nullptr : bias.data(), kTokens,
          &routing);
  }
  // In double, one token.   [num_experts]
  std::vector<double> Scores(size_t token) const {
    const auto begin = logits.begin() + token * config.num_experts;
    std::vector<double> scores(begin, begin + config.num_experts);
    const double max = *std::ranges::max_element(scores);
    for (double& s : scores) {
      s = config.gating == GatingFunction::kSigmoid ? 1 / (1 + std::exp(-s))
                                                    : std::exp(s - max);
    }
    if (config.gating == GatingFunction::kSigmoid) return scores;
    const double sum = std::accumulate(scores.begin(), scores.end(), 0.0);
    for (double& s : scores) s /= sum;
    return scores;
  }
  double Bias(uint32_t id) const { return bias.empty() ? 0.0 : bias[id]; }

  RouterConfig config;
  std::vector<float> logits;
  std::vector<float> bias;
  Routing routing;
};

// Relative error of a score: see the tests of Softmax and Sigmoid; logits are
// within 16 of each other. Normalising adds a sum of top_k and a quotient.
double ScoreError(const RouterConfig& config) {
  return (2 * (4 + 16) + config.num_experts / 16.0 + 6) * kUnitRoundoff;
}
double WeightError(const RouterConfig& config) {
  return 2 * ScoreError(config) + (config.top_k + 2.0) * kUnitRoundoff;
}

// CASES R02, R04, R09, G25: over shapes, against double.
TEST(RouterPropertyTest, WeightsAreTheDefinitionsAndNobodyBetterIsLeftOut) {
  for (const Shape& shape : Shapes()) {
    const Routed run(shape);
    const size_t k = run.config.top_k;
    for (size_t t = 0; t < kTokens; ++t) {
      const std::vector<double> scores = run.Scores(t);
      const uint32_t* ids = run.routing.ids.data() + t * k;
      double sum = 0, worst_key = 1e9;
      std::vector<bool> picked(scores.size());
      for (size_t s = 0; s < k; ++s) {
        ASSERT_FALSE(picked[ids[s]]) << "picked twice";
        picked[ids[s]] = true;
        sum += scores[ids[s]];
        worst_key = std::min(worst_key, scores[ids[s]] + run.Bias(ids[s]));
      }
      for (uint32_t e = 0; e < scores.size(); ++e) {
        if (picked[e]) continue;
        EXPECT_LE(scores[e] + run.Bias(e),
                  worst_key + 3 * ScoreError(run.config));
      }
      for (size_t s = 0; s < k; ++s) {
        const double norm = run.config.normalize_top_k ? sum : 1;
        const double expected =
            scores[ids[s]] / norm * double{run.config.scale};
        EXPECT_NEAR(run.routing.weights[t * k + s], expected,
                    expected * WeightError(run.config));
      }
    }
  }
}

TEST(RouterPropertyTest, WithoutBiasWeightsFallFromSlotToSlot) {
  for (const Shape& shape : Shapes()) {
    if (shape.biased) continue;
    const Routed run(shape);
    const size_t k = run.config.top_k;
    for (size_t t = 0; t < kTokens; ++t) {
      const float* weights = run.routing.weights.data() + t * k;
      EXPECT_TRUE(std::is_sorted(weights, weights + k, std::greater<>()));
    }
  }
}

// CASES R03: the invariant, for logits of any size and kind.
TEST(RouterPropertyTest, WeightsStayBetweenZeroAndScale) {
  const float inf = std::numeric_limits<float>::infinity();
  const float kinds[] = {inf,   -inf,   std::numeric_limits<float>::quiet_NaN(),
                         3e38f, -3e38f, 0.0f,
                         1e-40f};
  std::mt19937 rng(3);
  for (const Shape& shape : Shapes()) {
    Routed run(shape, 1000.0f);
    for (float& l : run.logits) {
      if (rng() % 4 == 0) l = kinds[rng() % std::size(kinds)];
    }
    run.Again();
    for (const float w : run.routing.weights) {
      ASSERT_GE(w, 0.0f);
      ASSERT_LE(w, run.config.scale);
    }
  }
}

// A prompt in one batch and its tokens one by one must agree to the bit.
TEST(RouterPropertyTest, ATokenIsRoutedAloneAsInABatch) {
  for (const Shape& shape : Shapes()) {
    const Routed run(shape);
    const size_t k = run.config.top_k;
    for (size_t t = 0; t < kTokens; ++t) {
      Routing alone;
      Route(run.config, run.logits.data() + t * run.config.num_experts,
            run.bias.empty() ? nullptr : run.bias.data(), 1, &alone);
      for (size_t s = 0; s < k; ++s) {
        ASSERT_EQ(alone.ids[s], run.routing.ids[t * k + s]);
        ASSERT_EQ(alone.weights[s], run.routing.weights[t * k + s]);
      }
    }
  }
}

// CASES R13: a choice must not depend on the machine either.
TEST(RouterPropertyTest, BitsAreTheSameOnEveryInstructionSet) {
  for (const Shape& shape : Shapes()) {
    Routed run(shape);
    ExpectSameBits([&] {
      run.Again();
      std::vector<float> all = run.routing.weights;
      for (const uint32_t id : run.routing.ids) {
        all.push_back(static_cast<float>(id));
      }
      return all;
    });
  }
}

// CASES R13: few distinct logits, so that nearly every pick is a tie.
TEST(RouterPropertyTest, AmongEqualsTheLowestIdsArePickedInOrder) {
  std::mt19937 rng(4);
  for (const Shape& shape : Shapes()) {
    if (shape.biased) continue;
    Routed run(shape);
    for (float& l : run.logits) l = static_cast<float>(rng() % 3);
    run.Again();
    for (size_t t = 0; t < kTokens; ++t) {
      const float* logits = run.logits.data() + t * run.config.num_experts;
      std::vector<uint32_t> expected(run.config.num_experts);
      std::iota(expected.begin(), expected.end(), 0u);
      std::ranges::stable_sort(expected, std::greater<>(),
                               [&](uint32_t id) { return logits[id]; });
      for (size_t s = 0; s < run.config.top_k; ++s) {
        ASSERT_EQ(run.routing.ids[t * run.config.top_k + s], expected[s]);
      }
    }
  }
}

}  // namespace
}  // namespace muster::routing

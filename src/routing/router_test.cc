#include "routing/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace muster::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

Routing RouteOne(const RouterConfig& config, std::vector<float> logits,
                 const float* bias = nullptr) {
  Routing routing;
  Route(config, logits.data(), bias, 1, &routing);
  return routing;
}

// Log-probabilities, so that softmax gives the probabilities back.
std::vector<float> Logs(std::vector<float> probabilities) {
  for (float& p : probabilities) p = std::log(p);
  return probabilities;
}

// CASES R02: softmax over all experts, then pick, no renormalisation.
TEST(RouterTest, WithoutNormalisationWeightsAreSharesOfAllExperts) {
  const Routing r =
      RouteOne({.num_experts = 4, .top_k = 2}, Logs({0.1f, 0.4f, 0.2f, 0.3f}));
  EXPECT_THAT(r.ids, ElementsAre(1, 3));
  EXPECT_THAT(r.weights,
              ElementsAre(FloatNear(0.4f, 1e-6f), FloatNear(0.3f, 1e-6f)));
}

TEST(RouterTest, WithNormalisationWeightsSumToOne) {
  const Routing r =
      RouteOne({.num_experts = 4, .top_k = 2, .normalize_top_k = true},
               Logs({0.1f, 0.4f, 0.2f, 0.3f}));
  EXPECT_THAT(r.weights, ElementsAre(FloatNear(4.0f / 7, 1e-6f),
                                     FloatNear(3.0f / 7, 1e-6f)));
}

// CASES R03: whatever the logits, weights stay in [0, 1].
TEST(RouterTest, WeightsAreNeverRawLogits) {
  std::mt19937 rng(3);
  std::normal_distribution<float> normal(0.0f, 50.0f);
  for (const GatingFunction gating :
       {GatingFunction::kSoftmax, GatingFunction::kSigmoid}) {
    for (int i = 0; i < 100; ++i) {
      std::vector<float> logits(60);
      for (float& l : logits) l = normal(rng);
      const Routing r =
          RouteOne({.num_experts = 60, .top_k = 4, .gating = gating}, logits);
      for (const float w : r.weights) {
        EXPECT_GE(w, 0.0f);
        EXPECT_LE(w, 1.0f);
      }
    }
  }
}

// CASES R04: the bias moves the choice, not the weight.
TEST(RouterTest, SelectionBiasIsNotPartOfTheWeight) {
  const float bias[] = {1.0f, 0.0f, 0.0f};
  const Routing r =
      RouteOne({.num_experts = 3, .top_k = 1}, Logs({0.2f, 0.5f, 0.3f}), bias);
  EXPECT_THAT(r.ids, ElementsAre(0));
  EXPECT_THAT(r.weights, ElementsAre(FloatNear(0.2f, 1e-6f)));
}

// CASES R09: once, after renormalisation.
TEST(RouterTest, ScaleIsAppliedOnceAfterNormalisation) {
  const Routing r = RouteOne(
      {.num_experts = 4, .top_k = 2, .normalize_top_k = true, .scale = 2.5f},
      Logs({0.1f, 0.4f, 0.2f, 0.3f}));
  EXPECT_NEAR(r.weights[0] + r.weights[1], 2.5f, 1e-6f);
}

// CASES R13.
TEST(RouterTest, TiesGoToTheLowestId) {
  const Routing r =
      RouteOne({.num_experts = 6, .top_k = 3}, {1, 2, 2, 2, 2, 0});
  EXPECT_THAT(r.ids, ElementsAre(1, 2, 3));
}

// CASES G25: no compiled limit.
TEST(RouterTest, ThousandsOfExpertsAreFine) {
  std::vector<float> logits(4097, 0.0f);
  logits[4096] = 3.0f;
  const Routing r = RouteOne({.num_experts = 4097, .top_k = 1}, logits);
  EXPECT_THAT(r.ids, ElementsAre(4096));
}

TEST(RouterTest, NanLosesAndNothingButNanStillRoutes) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(RouteOne({.num_experts = 3, .top_k = 2}, {nan, 1, 2}).ids,
              ElementsAre(2, 1));
  const Routing r = RouteOne({.num_experts = 2, .top_k = 1}, {nan, nan});
  EXPECT_THAT(r.ids, ElementsAre(0));
  EXPECT_THAT(r.weights, ElementsAre(0.5f));
}

// CASES R03.
TEST(RouterTest, InfinityTakesAllAndMinusInfinityNothing) {
  const float inf = std::numeric_limits<float>::infinity();
  const Routing one =
      RouteOne({.num_experts = 3, .top_k = 3}, {0.0f, inf, -inf});
  EXPECT_THAT(one.ids, ElementsAre(1, 0, 2));
  EXPECT_THAT(one.weights, ElementsAre(1.0f, 0.0f, 0.0f));
  const Routing none = RouteOne(
      {.num_experts = 2, .top_k = 2, .normalize_top_k = true}, {-inf, -inf});
  EXPECT_THAT(none.ids, ElementsAre(0, 1));
  EXPECT_THAT(none.weights, ElementsAre(0.5f, 0.5f));
}

// CASES G22: a file that does not say has no factor.
TEST(RouterTest, ScaleIsOneUnlessSaid) {
  const RouterConfig config{.num_experts = 2, .top_k = 2};
  EXPECT_EQ(config.scale, 1.0f);
  EXPECT_THAT(RouteOne(config, {0, 0}).weights, ElementsAre(0.5f, 0.5f));
}

// CASES R04, R09: the form of DeepSeek-V3.
TEST(RouterTest, BiasedSigmoidsAreNormalisedFromUnbiasedScores) {
  const float bias[] = {0.0f, 0.0f, 0.6f};
  const Routing r = RouteOne({.num_experts = 3,
                              .top_k = 2,
                              .gating = GatingFunction::kSigmoid,
                              .normalize_top_k = true,
                              .scale = 2.5f},
                             {2.0f, 1.0f, 0.0f}, bias);
  EXPECT_THAT(r.ids, ElementsAre(2, 0));  // keys 1.1 and 0.88
  const double sum = 0.5 + 0.8807970779778823;
  // exp, 1 + e, quotient, sum, quotient, scale: 10 roundoffs of at most 2.5.
  EXPECT_NEAR(r.weights[0], 2.5 * 0.5 / sum, 25 * 0x1p-24);
  EXPECT_NEAR(r.weights[1], 2.5 * 0.8807970779778823 / sum, 25 * 0x1p-24);
}

TEST(RouterTest, ABiasThatIsNanPicksNobodyButCrashesNothing) {
  const float bias[] = {std::numeric_limits<float>::quiet_NaN(), 0.0f};
  const Routing r = RouteOne({.num_experts = 2, .top_k = 1}, {9, 0}, bias);
  EXPECT_THAT(r.ids, ElementsAre(1));
}

TEST(RouterTest, NoTokensGiveAnEmptyRouting) {
  Routing r;
  Route({.num_experts = 4, .top_k = 2}, nullptr, nullptr, 0, &r);
  EXPECT_EQ(r.num_tokens, 0u);
  EXPECT_TRUE(r.ids.empty());
}

TEST(RouterDeathTest, MoreThanAllExpertsCannotBePicked) {
  Routing r;
  const float logits[] = {0, 0};
  EXPECT_DEATH(Route({.num_experts = 2, .top_k = 3}, logits, nullptr, 1, &r),
               "top_k");
}

TEST(RouterTest, SigmoidScoresEachExpertAlone) {
  const Routing r = RouteOne(
      {.num_experts = 2, .top_k = 2, .gating = GatingFunction::kSigmoid},
      {0.0f, 2.0f});
  EXPECT_THAT(r.ids, ElementsAre(1, 0));
  EXPECT_THAT(r.weights,
              ElementsAre(FloatNear(0.880797f, 1e-6f), FloatNear(0.5f, 1e-6f)));
}

}  // namespace
}  // namespace muster::routing

#include "runtime/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace muster::runtime {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

int32_t SampleOnce(SamplingOptions options, std::vector<float> logits) {
  return Sampler(std::move(options)).Sample(logits);
}

// Which tokens come up in many draws.
std::map<int32_t, int> Draw(SamplingOptions options,
                            const std::vector<float>& logits,
                            int draws = 4000) {
  Sampler sampler(std::move(options));
  std::map<int32_t, int> counts;
  for (int i = 0; i < draws; ++i) {
    std::vector<float> copy = logits;
    ++counts[sampler.Sample(copy)];
  }
  return counts;
}

SamplingOptions Plain() {
  return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0};
}

TEST(SamplerTest, GreedyTakesTheLargestAndTiesGoToTheLowestId) {
  EXPECT_EQ(SampleOnce({.temperature = 0}, {1, 3, 3, 2}), 1);
  EXPECT_EQ(ArgMax(std::vector<float>{kNan, -kInf, -5}), 2);
  EXPECT_EQ(ArgMax(std::vector<float>{kNan, kNan}), 0);
}

TEST(SamplerTest, DrawsFollowTheDistribution) {
  auto options = Plain();
  options.seed = 5;
  const auto counts =
      Draw(options, {std::log(0.5f), std::log(0.3f), std::log(0.2f)}, 20000);
  // Standard deviation of a share is below sqrt(0.25 / 20000) = 0.0035.
  EXPECT_NEAR(counts.at(0) / 20000.0, 0.5, 0.02);
  EXPECT_NEAR(counts.at(1) / 20000.0, 0.3, 0.02);
  EXPECT_NEAR(counts.at(2) / 20000.0, 0.2, 0.02);
}

TEST(SamplerTest, TheSameSeedGivesTheSameTokens) {
  std::vector<float> logits(100);
  for (size_t i = 0; i < logits.size(); ++i) {
    logits[i] = std::sin(static_cast<float>(i));
  }
  const auto draw = [&](uint64_t seed) {
    auto options = Plain();
    options.seed = seed;
    Sampler sampler(options);
    std::vector<int32_t> tokens;
    for (int i = 0; i < 50; ++i) {
      auto copy = logits;
      tokens.push_back(sampler.Sample(copy));
    }
    return tokens;
  };
  EXPECT_EQ(draw(7), draw(7));
  EXPECT_NE(draw(7), draw(8));
}

TEST(SamplerTest, TopKTopPAndMinPKeepTheLikeliest) {
  const std::vector<float> logits = {std::log(0.1f), std::log(0.6f),
                                     std::log(0.25f), std::log(0.05f)};
  auto top_k = Plain();
  top_k.top_k = 2;
  EXPECT_THAT(Draw(top_k, logits), ::testing::SizeIs(2));
  auto top_p = Plain();
  top_p.top_p = 0.7f;  // 0.6 is not enough, 0.85 is
  EXPECT_THAT(Draw(top_p, logits), ::testing::SizeIs(2));
  auto min_p = Plain();
  min_p.min_p = 0.15f;  // at least 0.09
  EXPECT_THAT(Draw(min_p, logits), ::testing::SizeIs(3));
}

TEST(SamplerTest, PenaltiesCountOnlyTheWindow) {
  SamplingOptions options = {
      .temperature = 0, .repetition_penalty = 2, .penalty_window = 2};
  Sampler sampler(options);
  sampler.Accept(0);
  std::vector<float> logits = {3, 2};
  EXPECT_EQ(sampler.Sample(logits), 1);  // 3 / 2 < 2
  sampler.Accept(1);
  sampler.Accept(1);  // 0 has left the window
  logits = {3, 2};
  EXPECT_EQ(sampler.Sample(logits), 0);
}

TEST(SamplerTest, PresenceIsTakenOnceAndFrequencyPerOccurrence) {
  SamplingOptions options = {.temperature = 0, .presence_penalty = 1};
  Sampler presence(options);
  for (int i = 0; i < 5; ++i) presence.Accept(0);
  std::vector<float> logits = {3.5f, 2};
  EXPECT_EQ(presence.Sample(logits), 0);
  options.presence_penalty = 0;
  options.frequency_penalty = 1;
  Sampler frequency(options);
  for (int i = 0; i < 5; ++i) frequency.Accept(0);
  logits = {3.5f, 2};
  EXPECT_EQ(frequency.Sample(logits), 1);
}

TEST(SamplerTest, BiasForbidsAndPrefers) {
  EXPECT_EQ(SampleOnce({.temperature = 0, .logit_bias = {{0, -kInf}}}, {9, 1}),
            1);
  EXPECT_EQ(SampleOnce({.temperature = 0, .logit_bias = {{1, 100}}}, {9, 1}),
            1);
  EXPECT_EQ(
      SampleOnce({.temperature = 0, .logit_bias = {{-1, 5}, {99, 5}}}, {9, 1}),
      0);
}

TEST(SamplerTest, NothingAllowedStillGivesAToken) {
  auto options = Plain();
  options.logit_bias = {{0, -kInf}, {1, -kInf}};
  EXPECT_EQ(SampleOnce(options, {1, 1}), 0);
  EXPECT_EQ(SampleOnce(Plain(), {kNan, kNan}), 0);
}

TEST(SamplerTest, OptionsOutOfRangeAreRefused) {
  EXPECT_TRUE(Validate(SamplingOptions()).ok());
  EXPECT_FALSE(Validate({.temperature = -1}).ok());
  EXPECT_FALSE(Validate({.temperature = kNan}).ok());
  EXPECT_FALSE(Validate({.top_p = 1.5f}).ok());
  EXPECT_FALSE(Validate({.min_p = -0.1f}).ok());
  EXPECT_FALSE(Validate({.repetition_penalty = 0}).ok());
  EXPECT_FALSE(Validate({.logit_bias = {{1, kNan}}}).ok());
}

}  // namespace
}  // namespace muster::runtime

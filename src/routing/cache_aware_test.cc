#include "routing/cache_aware.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "kernels/test_buffers.h"

namespace muster::routing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

constexpr RouterConfig kTwoOfFive = {.num_experts = 5, .top_k = 2};

// Of softmax: 0 is best, 4 worst.
const float kLogits[] = {std::log(0.4f), std::log(0.2f), std::log(0.18f),
                         std::log(0.12f), std::log(0.1f)};

Routing RouteOne(const RouterConfig& config, const CacheAware& aware,
                 std::vector<uint8_t> in_memory, size_t* num_replaced) {
  Routing routing;
  *num_replaced =
      RouteCacheAware(config, aware, kLogits, in_memory, 1, &routing);
  return routing;
}

std::vector<uint32_t> IdsOf(const RouterConfig& config, const CacheAware& aware,
                            std::vector<uint8_t> in_memory) {
  size_t num_replaced = 0;
  return RouteOne(config, aware, std::move(in_memory), &num_replaced).ids;
}

TEST(CacheAwareTest, AMissGivesWayToTheBestInMemoryWithItsOwnWeight) {
  size_t num_replaced = 0;
  const Routing r = RouteOne(kTwoOfFive, {.margin = 0.5f, .max_rank = 5},
                             {0, 0, 1, 1, 1}, &num_replaced);
  EXPECT_THAT(r.ids, ElementsAre(0, 2));
  EXPECT_THAT(r.weights,
              ElementsAre(FloatNear(0.4f, 1e-6f), FloatNear(0.18f, 1e-6f)));
  EXPECT_EQ(num_replaced, 1u);
}

TEST(CacheAwareTest, WeightsAreNormalisedOverTheExpertsThatWereChosen) {
  size_t num_replaced = 0;
  RouterConfig config = kTwoOfFive;
  config.normalize_top_k = true;
  config.scale = 2;
  const Routing r =
      RouteOne(config, {.margin = 0.5f}, {0, 0, 1, 0, 0}, &num_replaced);
  EXPECT_THAT(r.weights, ElementsAre(FloatNear(2 * 0.4f / 0.58f, 1e-6f),
                                     FloatNear(2 * 0.18f / 0.58f, 1e-6f)));
}

TEST(CacheAwareTest, WhatIsInMemoryStays) {
  EXPECT_THAT(IdsOf(kTwoOfFive, {.margin = 1}, {0, 1, 1, 1, 1}),
              ElementsAre(0, 1));
}

TEST(CacheAwareTest, TheFirstExpertNeverGivesWay) {
  RouterConfig one = kTwoOfFive;
  one.top_k = 1;
  EXPECT_THAT(IdsOf(one, {.margin = 1}, {0, 1, 1, 1, 1}), ElementsAre(0));
}

TEST(CacheAwareTest, NobodyBelowTheMarginStandsIn) {
  // 0.12 is 0.6 of 0.2.
  EXPECT_THAT(IdsOf(kTwoOfFive, {.margin = 0.39f}, {1, 0, 0, 1, 1}),
              ElementsAre(0, 1));
  EXPECT_THAT(IdsOf(kTwoOfFive, {.margin = 0.41f}, {1, 0, 0, 1, 1}),
              ElementsAre(0, 3));
}

TEST(CacheAwareTest, NobodyBehindTheRankStandsIn) {
  EXPECT_THAT(IdsOf(kTwoOfFive, {.margin = 1, .max_rank = 3}, {1, 0, 0, 1, 1}),
              ElementsAre(0, 1));
  EXPECT_THAT(IdsOf(kTwoOfFive, {.margin = 1, .max_rank = 4}, {1, 0, 0, 1, 1}),
              ElementsAre(0, 3));
  // By default twice as many as are chosen: 4.
  EXPECT_THAT(IdsOf(kTwoOfFive, {.margin = 1}, {1, 0, 0, 0, 1}),
              ElementsAre(0, 1));
}

TEST(CacheAwareTest, EachMissGetsItsOwnStandInTheBestMissFirst) {
  RouterConfig config = kTwoOfFive;
  config.top_k = 3;
  // 0.12 stands in for 0.2, and 0.1 for 0.18: either needs a margin of 0.45.
  EXPECT_THAT(IdsOf(config, {.margin = 0.45f}, {1, 0, 0, 1, 1}),
              ElementsAre(0, 3, 4));
  // 0.12 is too little for 0.2, and enough for 0.18.
  EXPECT_THAT(IdsOf(config, {.margin = 0.35f}, {1, 0, 0, 1, 1}),
              ElementsAre(0, 1, 3));
}

TEST(CacheAwareTest, AmongEqualsTheLowestIdStandsIn) {
  const std::vector<float> equal(6, 0.5f);
  const std::vector<uint8_t> in_memory = {0, 0, 0, 1, 1, 1};
  Routing routing;
  RouteCacheAware({.num_experts = 6, .top_k = 2}, {.margin = 0}, equal.data(),
                  in_memory, 1, &routing);
  EXPECT_THAT(routing.ids, ElementsAre(0, 3));
}

// What holds for every router, margin, rank and memory.

struct Shape {
  RouterConfig config;
  CacheAware aware;
};

std::vector<Shape> Shapes() {
  std::vector<Shape> shapes;
  for (const uint32_t num_experts : {1u, 4u, 60u, 128u}) {
    for (const uint32_t top_k : {1u, 2u, 8u, num_experts}) {
      if (top_k > num_experts) continue;
      for (const float margin : {0.0f, 0.2f, 0.6f, 1.0f}) {
        for (const uint32_t max_rank : {0u, 1u, top_k + 3, num_experts + 9}) {
          for (int bits = 0; bits < 4; ++bits) {
            shapes.push_back(
                {.config = {.num_experts = num_experts,
                            .top_k = top_k,
                            .gating = bits & 1 ? GatingFunction::kSigmoid
                                               : GatingFunction::kSoftmax,
                            .normalize_top_k = (bits & 2) != 0,
                            .scale = bits & 2 ? 2.5f : 1.0f},
                 .aware = {.margin = margin, .max_rank = max_rank}});
          }
        }
      }
    }
  }
  return shapes;
}

constexpr size_t kTokens = 4;

// Random scores and memory, routed both ways.
struct Routed {
  Routed(const Shape& shape, uint32_t seed)
      : config(shape.config),
        logits(kernels::NormalFloats(kTokens * config.num_experts, seed, 1.5f)),
        in_memory(config.num_experts) {
    std::mt19937 rng(seed);
    for (uint8_t& in : in_memory) in = rng() % 2;
    Route(config, logits.data(), nullptr, kTokens, &exact);
    num_replaced = RouteCacheAware(config, shape.aware, logits.data(),
                                   in_memory, kTokens, &aware);
    RouterConfig plain = {.num_experts = config.num_experts,
                          .top_k = config.num_experts,
                          .gating = config.gating};
    Route(plain, logits.data(), nullptr, kTokens, &all);
  }
  std::span<const uint32_t> Exact(size_t token) const {
    return std::span(exact.ids).subspan(token * config.top_k, config.top_k);
  }
  std::span<const uint32_t> Aware(size_t token) const {
    return std::span(aware.ids).subspan(token * config.top_k, config.top_k);
  }
  size_t RankOf(size_t token, uint32_t id) const {  // from 0
    const auto begin = all.ids.begin() + token * config.num_experts;
    return std::find(begin, begin + config.num_experts, id) - begin;
  }
  float ScoreOf(size_t token, uint32_t id) const {
    return all.weights[token * config.num_experts + RankOf(token, id)];
  }
  size_t NumMissing(std::span<const uint32_t> ids) const {
    return std::ranges::count_if(
        ids, [&](uint32_t id) { return in_memory[id] == 0; });
  }

  RouterConfig config;
  std::vector<float> logits;
  std::vector<uint8_t> in_memory;
  Routing exact, aware, all;
  size_t num_replaced = 0;
};

// Those of `ids` that `others` lack, in order.
std::vector<uint32_t> Without(std::span<const uint32_t> ids,
                              std::span<const uint32_t> others) {
  std::vector<uint32_t> left;
  for (const uint32_t id : ids) {
    if (std::ranges::find(others, id) == others.end()) left.push_back(id);
  }
  return left;
}

TEST(CacheAwarePropertyTest, OnlyMissesGiveWayToResidentsWithinTheBounds) {
  size_t num_seen = 0;
  for (const Shape& shape : Shapes()) {
    const Routed run(shape, 5);
    const size_t max_rank =
        shape.aware.max_rank == 0 ? 2 * run.config.top_k : shape.aware.max_rank;
    size_t num_replaced = 0;
    for (size_t t = 0; t < kTokens; ++t) {
      ASSERT_EQ(run.Aware(t)[0], run.Exact(t)[0]);
      const auto gone = Without(run.Exact(t), run.Aware(t));
      const auto come = Without(run.Aware(t), run.Exact(t));
      ASSERT_EQ(gone.size(), come.size());  // and so nobody is taken twice
      num_replaced += gone.size();
      for (size_t i = 0; i < gone.size(); ++i) {
        EXPECT_EQ(run.in_memory[gone[i]], 0);
        EXPECT_EQ(run.in_memory[come[i]], 1);
        EXPECT_LT(run.RankOf(t, come[i]), max_rank);
        EXPECT_GE(run.ScoreOf(t, come[i]),
                  (1 - shape.aware.margin) * run.ScoreOf(t, gone[i]));
      }
    }
    EXPECT_EQ(run.num_replaced, num_replaced);
    num_seen += num_replaced;
  }
  EXPECT_GT(num_seen, 500u);  // the shapes are not all idle
}

TEST(CacheAwarePropertyTest, WeightsAreThoseOfTheChosenScoresToTheBit) {
  for (const Shape& shape : Shapes()) {
    const Routed run(shape, 6);
    for (size_t t = 0; t < kTokens; ++t) {
      std::vector<float> weights;
      for (const uint32_t id : run.Aware(t)) {
        weights.push_back(run.ScoreOf(t, id));
      }
      EXPECT_TRUE(std::ranges::is_sorted(weights, std::greater<>()));
      ScoresToWeights(run.config, weights);
      const auto got = std::span(run.aware.weights)
                           .subspan(t * run.config.top_k, run.config.top_k);
      EXPECT_TRUE(std::ranges::equal(got, weights));
    }
  }
}

TEST(CacheAwarePropertyTest, WithAllInMemoryOrNothingItIsRouteToTheBit) {
  for (const Shape& shape : Shapes()) {
    const Routed run(shape, 7);
    for (const uint8_t in : {uint8_t{0}, uint8_t{1}}) {
      const std::vector<uint8_t> in_memory(run.config.num_experts, in);
      Routing aware;
      RouteCacheAware(run.config, shape.aware, run.logits.data(), in_memory,
                      kTokens, &aware);
      ASSERT_EQ(aware.ids, run.exact.ids);
      ASSERT_EQ(aware.weights, run.exact.weights);
    }
  }
}

TEST(CacheAwarePropertyTest, MissesFallAsTheMarginGrows) {
  std::vector<size_t> num_missing;
  for (const float margin : {0.0f, 0.1f, 0.2f, 0.4f, 1.0f}) {
    const Routed run({.config = {.num_experts = 128, .top_k = 8},
                      .aware = {.margin = margin}},
                     8);
    num_missing.push_back(0);
    for (size_t t = 0; t < kTokens; ++t) {
      num_missing.back() += run.NumMissing(run.Aware(t));
    }
  }
  EXPECT_TRUE(std::ranges::is_sorted(num_missing, std::greater<>()));
  EXPECT_LT(num_missing.back(), num_missing.front() / 2);
}

}  // namespace
}  // namespace muster::routing

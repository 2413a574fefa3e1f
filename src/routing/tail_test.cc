#include "routing/tail.h"

#include <gtest/gtest.h>

#include <limits>

namespace muster::routing {
namespace {

std::vector<uint8_t> Tail(std::vector<float> weights, size_t top_k,
                          float weight) {
  const Routing routing = {.num_tokens = weights.size() / top_k,
                           .top_k = top_k,
                           .ids = std::vector<uint32_t>(weights.size()),
                           .weights = std::move(weights)};
  std::vector<uint8_t> in_tail = {7, 7, 7, 7, 7, 7, 7, 7, 7};
  FindTail(routing, weight, &in_tail);
  return in_tail;
}

using Flags = std::vector<uint8_t>;

TEST(TailTest, AShareBelowTheWeightIsInIt) {
  EXPECT_EQ(Tail({0.5f, 0.25f, 0.25f, 0.75f, 0.125f, 0.125f}, 3, 0.25f),
            (Flags{0, 0, 0, 0, 1, 1}));
}

TEST(TailTest, WeightsThatAreNotNormalisedAreSharesOfTheirSum) {
  EXPECT_EQ(Tail({0.02f, 0.01f, 4.0f, 1.0f}, 2, 0.3f), (Flags{0, 0, 0, 1}));
}

TEST(TailTest, TheFirstIsNeverInIt) {
  EXPECT_EQ(Tail({0.5f, 0.5f, 1.0f, 0.0f}, 2, 1), (Flags{0, 1, 0, 1}));
  EXPECT_EQ(Tail({1.0f, 1.0f}, 1, 1), (Flags{0, 0}));
}

TEST(TailTest, WithoutAWeightNoneIs) {
  EXPECT_EQ(Tail({0.9f, 0.1f, 0.0f, 0.0f}, 2, 0), (Flags{0, 0, 0, 0}));
}

}  // namespace
}  // namespace muster::routing

#include "runtime/log_probabilities.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace muster::runtime {
namespace {

// Logits are float32: a probability of order one is off by a few of its ulps.
constexpr double kClose = 4 * std::numeric_limits<float>::epsilon();

std::vector<float> Logs(const std::vector<double>& values) {
  std::vector<float> logs;
  logs.reserve(values.size());
  for (const double v : values) logs.push_back(static_cast<float>(std::log(v)));
  return logs;
}

TEST(LogProbabilitiesTest, AShiftOfTheLogitsChangesNothing) {
  const std::vector<float> near = {1, 2, 3};
  const std::vector<float> far = {1001, 1002, 1003};  // exp would overflow
  const LogProbabilities a(near);
  const LogProbabilities b(far);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], b[i]);
}

TEST(LogProbabilitiesTest, ProbabilitiesAreTheShareOfTheirExponentials) {
  const std::vector<float> logits = Logs({1, 2, 5});
  const LogProbabilities logs(logits);
  EXPECT_NEAR(std::exp(logs[0]), 0.125, kClose);
  EXPECT_NEAR(std::exp(logs[2]), 0.625, kClose);
}

TEST(DivergenceTest, IsWhatTheFormulaGivesByHand) {
  const std::vector<float> p = Logs({0.5, 0.25, 0.25});
  const std::vector<float> q = Logs({0.25, 0.25, 0.5});
  // 0.5 ln 2 + 0 + 0.25 ln 0.5
  EXPECT_NEAR(Divergence(LogProbabilities(p), LogProbabilities(q)),
              0.25 * std::log(2), kClose);
}

TEST(DivergenceTest, IsTheReferencesViewAndNotSymmetric) {
  const std::vector<float> p = Logs({0.9, 0.1});
  const std::vector<float> q = Logs({0.5, 0.5});
  const double forth = Divergence(LogProbabilities(p), LogProbabilities(q));
  const double back = Divergence(LogProbabilities(q), LogProbabilities(p));
  EXPECT_NEAR(forth, 0.9 * std::log(1.8) + 0.1 * std::log(0.2), kClose);
  EXPECT_NEAR(back, 0.5 * std::log(1 / 1.8) + 0.5 * std::log(5), kClose);
}

TEST(DivergenceTest, OfEqualLogitsIsExactlyZero) {
  const std::vector<float> p = {0.3f, -7, 12.5f, 1e-3f};
  EXPECT_EQ(Divergence(LogProbabilities(p), LogProbabilities(p)), 0.0);
}

}  // namespace
}  // namespace muster::runtime

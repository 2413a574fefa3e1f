// Choices and weights of transformers' own routers, from
// tools/oracles/router_cases.py.

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "routing/router.h"

namespace muster::routing {
namespace {

struct Case {
  std::string family;
  RouterConfig config;
  size_t num_tokens = 0;
  std::vector<float> bias;    // [num_experts] or empty
  std::vector<float> logits;  // [num_tokens, num_experts]
  std::vector<uint32_t> ids;  // [num_tokens, top_k]
  std::vector<float> weights;
};

template <class T>
void AppendLine(std::istream& in, std::vector<T>* out) {
  std::string line;
  std::getline(in, line);
  std::istringstream values(line);
  for (T value; values >> value;) out->push_back(value);
}

std::vector<Case> ReadCases() {
  std::ifstream in(std::string(MUSTER_SOURCE_DIR) +
                   "/src/routing/testdata/router_cases.txt");
  std::vector<Case> cases;
  for (std::string line; std::getline(in, line);) {
    Case c;
    std::string gating;
    bool biased = false;
    std::istringstream head(line);
    head >> c.family >> c.config.num_experts >> c.config.top_k >> gating >>
        c.config.normalize_top_k >> c.config.scale >> biased >> c.num_tokens;
    c.config.gating = gating == "sigmoid" ? GatingFunction::kSigmoid
                                          : GatingFunction::kSoftmax;
    if (biased) AppendLine(in, &c.bias);
    for (size_t t = 0; t < c.num_tokens; ++t) {
      AppendLine(in, &c.logits);
      AppendLine(in, &c.ids);
      AppendLine(in, &c.weights);
    }
    cases.push_back(c);
  }
  return cases;
}

// CASES R02, R04, R09, as the models' own code has them.
TEST(RouterOracleTest, ChoosesAndWeighsAsTransformersDoes) {
  const std::vector<Case> cases = ReadCases();
  ASSERT_EQ(cases.size(), 6u);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.family);
    ASSERT_EQ(c.logits.size(), c.num_tokens * c.config.num_experts);
    Routing routing;
    Route(c.config, c.logits.data(), c.bias.empty() ? nullptr : c.bias.data(),
          c.num_tokens, &routing);
    EXPECT_EQ(routing.ids, c.ids);
    for (size_t i = 0; i < c.weights.size(); ++i) {
      // Each side: exp within 2 ulp and the rounding of x - max, which is
      // within 16 here, in the term and in the sum; sums of at most 8 steps
      // and 4 across lanes; divisions, normalisation, scale.
      const double roundings = 2 * (2 * (4 + 16) + 8 + 4 + 1 + 8 + 1 + 1);
      EXPECT_NEAR(routing.weights[i], c.weights[i],
                  std::fabs(c.weights[i]) * roundings * 0x1p-24);
    }
  }
}

}  // namespace
}  // namespace muster::routing

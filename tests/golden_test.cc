// The engine against what transformers computes on the same weights, for every
// file in tests/goldens (see its README).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "formats/model_files.h"
#include "kernels/activations.h"
#include "runtime/engine.h"
#include "runtime/sampler.h"
#include "tests/goldens.h"

namespace muster {
namespace {

using nlohmann::json;
using runtime::Engine;

std::unique_ptr<Engine> LoadEngine(const std::string& form,
                                   runtime::EngineOptions options) {
  auto files = formats::OpenModelFiles(GoldenPath(form));
  EXPECT_TRUE(files.ok()) << files.status().message();
  if (!files.ok()) return nullptr;
  auto engine = Engine::Load(*files, options, nullptr);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return engine.ok() ? std::move(engine).value() : nullptr;
}

// Of the experts' matrices.
DType WeightType(const Engine& engine) {
  return engine.model().weights.layers[0].experts[0].gate.type;
}

bool RoundsActivations(const Engine& engine) {
  return !kernels::FormRead(WeightType(engine)).floats;
}

// KL(softmax(p) || softmax(q)) in nats.
double Divergence(std::span<const float> p, std::span<const float> q) {
  const auto log_sum = [](std::span<const float> x) {
    const float most = *std::max_element(x.begin(), x.end());
    double sum = 0;
    for (const float v : x) sum += std::exp(double{v} - most);
    return most + std::log(sum);
  };
  const double lp = log_sum(p), lq = log_sum(q);
  double kl = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    kl += std::exp(p[i] - lp) * ((p[i] - lp) - (q[i] - lq));
  }
  return kl;
}

const runtime::EngineOptions kExact = {.num_threads = 2,
                                       .kv_type = kernels::KvType::kF32};

class GoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  GoldenTest()
      : golden_(ReadGolden(GetParam())),
        engine_(LoadEngine(GetParam(), kExact)) {}
  json golden_;
  std::unique_ptr<Engine> engine_;
};

// float32_noise is what the order of additions alone does in the reference, at
// the worst of the folder's prompts. The engine differs from it in order
// everywhere and in exp, cos and sin by an ulp or two: a small multiple covers
// that, and any fault of math is far outside (the smallest router margin is
// 2e-4, logits are about 10).
float Tolerance(const json& golden) {
  return 4 * golden.at("float32_noise").get<float>();
}

TEST_P(GoldenTest, FloatLogitsAgreeAtEveryRecordedPosition) {
  ASSERT_NE(engine_, nullptr);
  if (RoundsActivations(*engine_)) GTEST_SKIP() << "activations are rounded";
  for (const json& prompt : golden_.at("prompts")) {
    engine_->Rewind(0);
    const auto tokens = prompt.at("tokens").get<std::vector<int32_t>>();
    const auto logits = engine_->AppendForAllLogits(tokens);
    ASSERT_TRUE(logits.ok()) << logits.status().message();
    const size_t vocab = golden_.at("vocab_size");
    float worst = 0;
    for (const json& row : prompt.at("logits")) {
      const auto expected = row.at("values").get<std::vector<float>>();
      const size_t position = row.at("position");
      for (size_t i = 0; i < vocab; ++i) {
        worst = std::max(
            worst, std::abs((*logits)[position * vocab + i] - expected[i]));
      }
    }
    EXPECT_LE(worst, Tolerance(golden_)) << tokens.size() << " tokens";
  }
}

TEST_P(GoldenTest, FloatRoutingPicksTheSameExpertsWithTheSameWeights) {
  ASSERT_NE(engine_, nullptr);
  if (RoundsActivations(*engine_)) GTEST_SKIP() << "activations are rounded";
  std::vector<routing::Routing> routings;
  engine_->KeepRoutings(&routings);
  for (const json& prompt : golden_.at("prompts")) {
    engine_->Rewind(0);
    const auto tokens = prompt.at("tokens").get<std::vector<int32_t>>();
    ASSERT_TRUE(engine_->Append(tokens).ok());
    for (const json& layer : prompt.at("routing")) {
      const routing::Routing& got = routings[layer.at("layer")];
      std::vector<uint32_t> ids;
      std::vector<float> weights;
      for (const json& row : layer.at("experts")) {
        for (const auto& id : row) ids.push_back(id);
      }
      for (const json& row : layer.at("weights")) {
        for (const auto& weight : row) weights.push_back(weight);
      }
      EXPECT_EQ(got.ids, ids) << "layer " << layer.at("layer");
      ASSERT_EQ(got.weights.size(), weights.size());
      for (size_t i = 0; i < weights.size(); ++i) {
        // Ids are exact while scores err by less than half the margin.
        ASSERT_NEAR(got.weights[i], weights[i],
                    prompt.at("router_margin").get<float>() / 2);
      }
    }
    // CASES R17: layers without a router stay without one.
    size_t num_moe = 0;
    for (const auto& r : routings) num_moe += r.num_tokens != 0;
    EXPECT_EQ(num_moe, golden_.at("moe_layers").size());
  }
}

TEST_P(GoldenTest, FloatGreedyTokensAreTheReferences) {
  ASSERT_NE(engine_, nullptr);
  if (RoundsActivations(*engine_)) GTEST_SKIP() << "activations are rounded";
  for (const json& prompt : golden_.at("prompts")) {
    engine_->Rewind(0);
    auto logits =
        engine_->Append(prompt.at("tokens").get<std::vector<int32_t>>());
    std::vector<int32_t> greedy;
    while (greedy.size() < prompt.at("greedy").size()) {
      ASSERT_TRUE(logits.ok());
      greedy.push_back(runtime::ArgMax(*logits));
      logits = engine_->Append({&greedy.back(), 1});
    }
    EXPECT_EQ(greedy, prompt.at("greedy").get<std::vector<int32_t>>());
  }
}

// Rounding activations to 8 bits with a scale per 32 costs little: the bound is
// what llama.cpp's own rounding costs on these files, with room for none.
constexpr double kMostDivergence = 5e-3;
// Divergence grows with the square of the activations' error. Of normal numbers
// the largest of 32 is about 2.07 sigma, and 8 bits leave an error of
// 2.07 / 127 / sqrt(12) = 0.0047 sigma; BF16 leaves 2^-8 / sqrt(3) times 0.735
// (the mean of where a number stands between two powers of two) = 0.00166 of
// it. (0.0047 / 0.00166)^2 = 8.
constexpr double kMostBFloatDivergence = kMostDivergence / 8;

TEST_P(GoldenTest, DivergenceByRoundedActivationsIsSmall) {
  ASSERT_NE(engine_, nullptr);
  if (!RoundsActivations(*engine_)) GTEST_SKIP() << "nothing is rounded";
  double sum = 0, worst = 0;
  size_t count = 0;
  for (const json& prompt : golden_.at("prompts")) {
    engine_->Rewind(0);
    const auto tokens = prompt.at("tokens").get<std::vector<int32_t>>();
    const auto logits = engine_->AppendForAllLogits(tokens);
    ASSERT_TRUE(logits.ok());
    const size_t vocab = golden_.at("vocab_size");
    for (const json& row : prompt.at("logits")) {
      const size_t position = row.at("position");
      const double kl = Divergence(row.at("values").get<std::vector<float>>(),
                                   logits->subspan(position * vocab, vocab));
      sum += kl;
      worst = std::max(worst, kl);
      ++count;
    }
  }
  fmt::print(
      "{}: KL to float32 of the same weights {:.2e} mean, {:.2e} worst "
      "of {} positions\n",
      GetParam(), sum / static_cast<double>(count), worst, count);
  EXPECT_LT(sum / static_cast<double>(count),
            WeightType(*engine_) == DType::kBF16 ? kMostBFloatDivergence
                                                 : kMostDivergence);
}

// CASES of DESIGN's second promise, as far as one sequence shows it: the same
// bits whatever the chunk, the thread count or the way in.
TEST_P(GoldenTest, LogitsAreTheSameBitsForAnyChunkAndThreadCount) {
  const json prompt = golden_.at("prompts").back();
  const auto tokens = prompt.at("tokens").get<std::vector<int32_t>>();
  std::vector<float> first;
  for (const size_t threads : {1, 3}) {
    for (const size_t chunk : {1, 7, 512}) {
      const auto engine =
          LoadEngine(GetParam(), {.num_threads = threads,
                                  .chunk_tokens = chunk,
                                  .kv_type = kernels::KvType::kF16});
      ASSERT_NE(engine, nullptr);
      const auto logits = engine->AppendForAllLogits(tokens);
      ASSERT_TRUE(logits.ok());
      const std::vector<float> got(logits->begin(), logits->end());
      if (first.empty()) first = got;
      EXPECT_EQ(got, first) << threads << " threads, chunk " << chunk;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(AllFiles, GoldenTest,
                         ::testing::ValuesIn(AllGoldenForms()),
                         [](const auto& param) {
                           return AsTestName(param.param);
                         });

}  // namespace
}  // namespace muster

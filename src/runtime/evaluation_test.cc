#include "runtime/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "runtime/log_probabilities.h"

namespace muster::runtime {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Engine> Load(const std::string& golden) {
  const auto files = formats::OpenModelFiles(std::string(MUSTER_SOURCE_DIR) +
                                             "/tests/goldens/" + golden);
  EXPECT_TRUE(files.ok()) << files.status().message();
  auto engine = Engine::Load(*files, {.num_threads = 1}, nullptr);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(engine).value();
}

// More than one piece of logits, and no multiple of anything.
std::vector<int32_t> Tokens() {
  std::vector<int32_t> tokens;
  for (int i = 0; i < 77; ++i) tokens.push_back((i * 37 + i * i) % 128);
  return tokens;
}

// Token by token: the plain way.
double NatsAfter(Engine& engine, const std::vector<int32_t>& tokens,
                 size_t begin, size_t scored) {
  engine.Rewind(0);
  for (size_t i = begin; i + 1 < scored; ++i) {
    EXPECT_TRUE(engine.Append({&tokens[i], 1}).ok());
  }
  const auto logits = engine.Append({&tokens[scored - 1], 1});
  return -LogProbabilities(*logits)[static_cast<size_t>(tokens[scored])];
}

TEST(ScoreTokensTest, ScoresEachTokenOnceBehindItsWindow) {
  const auto engine = Load("qwen3_moe/model.gguf");
  const auto tokens = Tokens();
  std::atomic<uint64_t> done{0};
  const auto score =
      ScoreTokens(*engine, tokens, {.size = 48, .stride = 20}, done);
  ASSERT_TRUE(score.ok());
  EXPECT_EQ(score->num_scored, tokens.size() - 1);
  EXPECT_EQ(done, tokens.size());
  // Windows begin at 0, 20 and 40 and end at 48, 68 and 77.
  double expected = 0;
  for (size_t i = 1; i < 77; ++i) {
    const size_t begin = i < 48 ? 0 : i < 68 ? 20 : 40;
    expected += NatsAfter(*engine, tokens, begin, i);
  }
  // The logits are the same bits; the sum is taken in the same order.
  EXPECT_DOUBLE_EQ(score->nats, expected);
}

TEST(CompareTokensTest, AModelBesideItselfDivergesByNothing) {
  const auto engine = Load("mixtral/model.gguf");
  const auto again = Load("mixtral/model.gguf");
  std::atomic<uint64_t> done{0};
  const auto comparison = CompareTokens(*engine, *again, Tokens(),
                                        {.size = 64, .stride = 32}, done);
  ASSERT_TRUE(comparison.ok());
  EXPECT_EQ(comparison->divergences, std::vector<float>(76, 0.0f));
  EXPECT_EQ(comparison->num_same_best, 76u);
  EXPECT_EQ(comparison->score.nats, comparison->reference.nats);
}

TEST(CompareTokensTest, ScoresAreThoseOfEachModelAlone) {
  const auto engine = Load("qwen3_moe-q4_0/model.gguf");
  const auto reference = Load("qwen3_moe/model.gguf");
  std::atomic<uint64_t> done{0};
  const Windows windows = {.size = 64, .stride = 32};
  const auto both = CompareTokens(*engine, *reference, Tokens(), windows, done);
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(both->score.nats,
            ScoreTokens(*engine, Tokens(), windows, done)->nats);
  EXPECT_EQ(both->reference.nats,
            ScoreTokens(*reference, Tokens(), windows, done)->nats);
  EXPECT_GT(both->mean_divergence(), 0);
  EXPECT_LT(both->num_same_best, 76u);
}

TEST(CompareTokensTest, TheDivergenceIsTheModelsFromTheReference) {
  const auto engine = Load("qwen3_moe-q4_0/model.gguf");
  const auto reference = Load("qwen3_moe/model.gguf");
  const std::vector<int32_t> two = {5, 17};
  std::atomic<uint64_t> done{0};
  const auto both =
      CompareTokens(*engine, *reference, two, {.size = 64, .stride = 32}, done);
  ASSERT_TRUE(both.ok());
  engine->Rewind(0);
  reference->Rewind(0);
  const auto q = engine->Append(std::span(two).first(1));
  const auto p = reference->Append(std::span(two).first(1));
  EXPECT_EQ(both->divergences,
            std::vector<float>{static_cast<float>(
                Divergence(LogProbabilities(*p), LogProbabilities(*q)))});
}

TEST(CompareTokensTest, ModelsOfDifferentVocabulariesAreRefused) {
  const auto engine = Load("qwen3_moe/model.gguf");
  const auto files = formats::OpenModelFiles(std::string(MUSTER_SOURCE_DIR) +
                                             "/models/demo/hf");
  ASSERT_TRUE(files.ok());
  const auto other = Engine::Load(*files, {.num_threads = 1}, nullptr);
  ASSERT_TRUE(other.ok());
  std::atomic<uint64_t> done{0};
  const Status status = CompareTokens(*engine, **other, Tokens(),
                                      {.size = 64, .stride = 32}, done)
                            .status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("8192"));
}

TEST(ComparisonTest, SharesAreTakenOfTheSortedDivergences) {
  Comparison comparison;
  for (int i = 100; i >= 1; --i) {
    comparison.divergences.push_back(static_cast<float>(i));
  }
  EXPECT_EQ(comparison.DivergenceAt(0.5), 50);
  EXPECT_EQ(comparison.DivergenceAt(0.95), 95);
  EXPECT_EQ(comparison.DivergenceAt(1), 100);
  EXPECT_DOUBLE_EQ(comparison.mean_divergence(), 50.5);
}

}  // namespace
}  // namespace muster::runtime

#include "runtime/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <string>

namespace muster::runtime {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Engine> Load(const std::string& golden,
                             EngineOptions options = {}) {
  const auto files = formats::OpenModelFiles(std::string(MUSTER_SOURCE_DIR) +
                                             "/tests/goldens/" + golden);
  EXPECT_TRUE(files.ok()) << files.status().message();
  auto engine = Engine::Load(*files, options, nullptr);
  EXPECT_TRUE(engine.ok()) << engine.status().message();
  return std::move(engine).value();
}

const std::vector<int32_t> kPrompt = {5, 17, 3, 99, 42, 8};

std::vector<float> Copy(std::span<const float> logits) {
  return {logits.begin(), logits.end()};
}

TEST(EngineTest, TokensOutsideTheVocabularyAreRefusedAndNothingChanges) {
  const auto engine = Load("qwen3_moe/model.gguf");
  const std::vector<int32_t> too_large = {1, 1 << 20};
  const std::vector<int32_t> negative = {-1};
  for (const auto& tokens : {too_large, negative, {}}) {
    EXPECT_EQ(engine->Append(tokens).status().code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(engine->position(), 0u);
  EXPECT_EQ(engine->counters().num_tokens, 0u);
}

TEST(EngineTest, MoreTokensThanTheContextAreRefused) {
  const auto engine = Load("qwen3_moe/model.gguf", {.context_length = 8});
  ASSERT_TRUE(engine->Append(kPrompt).ok());
  const Status status = engine->Append(kPrompt).status();
  EXPECT_THAT(status.message(), HasSubstr("context of 8"));
  EXPECT_EQ(engine->position(), 6u);
}

TEST(EngineTest, RewindingGivesTheSameBitsAgain) {
  const auto engine = Load("mixtral/model.gguf");
  const auto first = Copy(*engine->Append(kPrompt));
  engine->Rewind(2);
  const auto again = Copy(*engine->Append(std::span(kPrompt).subspan(2)));
  EXPECT_EQ(first, again);
}

TEST(EngineTest, EnginesThatShareAModelKeepSequencesApart) {
  const auto first = Load("mixtral/model.gguf");
  auto second = Engine::Create(first->shared_model(), {.num_threads = 1});
  ASSERT_TRUE(second.ok()) << second.status().message();
  const auto expected = Copy(*first->Append(kPrompt));
  ASSERT_TRUE(first->Append(kPrompt).ok());
  EXPECT_EQ(Copy(*(*second)->Append(kPrompt)), expected);
  EXPECT_EQ(first->position(), 2 * kPrompt.size());
  EXPECT_EQ((*second)->position(), kPrompt.size());
}

TEST(EngineTest, PhaseTimesAddUpToTheTimeOfTheCall) {
  const auto engine = Load("qwen2_moe/model.gguf", {.num_threads = 1});
  PhaseTimes times = {};
  engine->KeepPhaseTimes(&times);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(engine->Append(kPrompt).ok());
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  double sum = 0;
  for (size_t phase = 0; phase < kNumPhases; ++phase) {
    // All experts are in memory: nobody waits for one.
    EXPECT_EQ(times[phase] > 0, phase != Index(Phase::kWait)) << phase;
    sum += times[phase];
  }
  EXPECT_LE(sum, spent.count());
  engine->KeepPhaseTimes(nullptr);
  const PhaseTimes before = times;
  ASSERT_TRUE(engine->Append(kPrompt).ok());
  EXPECT_EQ(times, before);
}

// CASES S01: only real tokens are counted, top_k for each in every MoE layer.
TEST(EngineTest, CountsAreTokensTimesTopKInEveryMoeLayer) {
  const auto engine =
      Load("qwen2_moe-dense_layers/model.gguf", {.chunk_tokens = 4});
  ASSERT_TRUE(engine->Append(kPrompt).ok());
  const auto& stats = engine->counters().routing;
  const auto& layers = engine->model().config.layers;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    EXPECT_EQ(stats.tokens(layer), layers[layer].is_moe ? kPrompt.size() : 0);
  }
}

// The products that ran agree with the formula: each token takes top_k experts.
TEST(EngineTest, MeasuredParametersAgreeWithTheFormula) {
  for (const char* golden : {"qwen3_moe/model.gguf", "olmoe/hf",
                             "qwen2_moe-dense_layers/model.gguf"}) {
    const auto engine = Load(golden);
    ASSERT_TRUE(engine->Append(kPrompt).ok());
    const model::ParameterCounts& counts = engine->model().parameters;
    EXPECT_EQ(engine->counters().routed_parameters,
              kPrompt.size() * (counts.active - counts.always_on))
        << golden;
    engine->ResetCounters();
    EXPECT_EQ(engine->counters().routed_parameters, 0u);
  }
}

// On the demo model: the goldens' heads are narrower than a block.
TEST(EngineTest, AQ8CacheIsSmallerAndClose) {
  const std::string path =
      std::string(MUSTER_SOURCE_DIR) + "/models/demo/demo-moe-q8_0.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there";
  const auto files = formats::OpenModelFiles(path);
  ASSERT_TRUE(files.ok());
  const auto load = [&](kernels::KvType type) {
    auto engine =
        Engine::Load(*files, {.context_length = 64, .kv_type = type}, nullptr);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return std::move(engine).value();
  };
  const auto exact = load(kernels::KvType::kF32);
  const auto small = load(kernels::KvType::kQ8);
  EXPECT_LT(small->kv_bytes(), exact->kv_bytes() / 3);
  const auto a = Copy(*exact->Append(kPrompt));
  const auto b = Copy(*small->Append(kPrompt));
  // Half a step of 1/127 of the largest of 32, over eight layers: tenths of
  // logits that reach 20.
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1.0f);
  EXPECT_NE(a, b);
}

TEST(EngineTest, AQ8CacheNeedsHeadsOfWholeBlocks) {
  const auto files = formats::OpenModelFiles(
      std::string(MUSTER_SOURCE_DIR) + "/tests/goldens/mixtral/model.gguf");
  ASSERT_TRUE(files.ok());
  const Status status =
      Engine::Load(*files, {.kv_type = kernels::KvType::kQ8}, nullptr).status();
  EXPECT_THAT(status.message(), HasSubstr("multiple of 32"));
}

TEST(EngineTest, AModelThatLacksATensorIsRefusedByName) {
  auto files = formats::OpenModelFiles(std::string(MUSTER_SOURCE_DIR) +
                                       "/tests/goldens/olmoe/model.gguf");
  ASSERT_TRUE(files.ok());
  auto& tensors = files->tensors;
  const auto down =
      std::find_if(tensors.begin(), tensors.end(), [](const auto& tensor) {
        return tensor.name == "blk.1.ffn_down_exps.weight";
      });
  ASSERT_NE(down, tensors.end());
  down->name = "blk.1.surprise.weight";
  ASSERT_TRUE(files->BuildIndex().ok());
  const Status status = Engine::Load(*files, {}, nullptr).status();
  EXPECT_THAT(status.message(), HasSubstr("blk.1.ffn_down_exps.weight"));
}

// CASES T08: a tensor that no slot takes is an error, not ignored.
TEST(EngineTest, ATensorThatFitsNoSlotIsRefusedByName) {
  auto files = formats::OpenModelFiles(std::string(MUSTER_SOURCE_DIR) +
                                       "/tests/goldens/qwen3_moe/hf");
  ASSERT_TRUE(files.ok());
  formats::TensorInfo extra = files->tensors.front();
  extra.name = "model.layers.0.mlp.experts.surprise";
  files->tensors.push_back(extra);
  ASSERT_TRUE(files->BuildIndex().ok());
  const Status status = Engine::Load(*files, {}, nullptr).status();
  EXPECT_THAT(status.message(), HasSubstr("surprise"));
}

}  // namespace
}  // namespace muster::runtime

#include "model/config_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "model/config.h"

namespace muster::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A Qwen2-MoE configuration with `extra` members behind it.
std::string HfConfig(const std::string& extra,
                     const std::string& architecture = "Qwen2MoeForCausalLM") {
  return R"({"architectures":[")" + architecture +
         R"("],"hidden_size":64,"num_hidden_layers":4,"vocab_size":100,)"
         R"("num_attention_heads":4,"intermediate_size":96,"num_experts":8,)"
         R"("num_experts_per_tok":2,"moe_intermediate_size":32,)"
         R"("shared_expert_intermediate_size":64,)"
         R"("max_position_embeddings":512)" +
         extra + "}";
}

ReadConfigResult Read(const std::string& json) {
  auto read = ReadHfConfig(json);
  EXPECT_TRUE(read.ok()) << read.status().message();
  return std::move(read).value();
}

std::string ErrorOf(const std::string& json) {
  const auto read = ReadHfConfig(json);
  if (!read.ok()) return read.status().message();
  return Validate(read->config).message();
}

// CASES R01: the family's default when absent, said aloud; else what it says.
TEST(ConfigReaderTest, R01ExplicitNormalisationWinsOverTheFamilysDefault) {
  const auto absent = Read(HfConfig(""));
  EXPECT_FALSE(absent.config.layers[0].router.normalize_top_k);
  EXPECT_THAT(absent.assumptions,
              ElementsAre(HasSubstr("norm_topk_prob is absent")));
  const auto given = Read(HfConfig(R"(,"norm_topk_prob":true)"));
  EXPECT_TRUE(given.config.layers[0].router.normalize_top_k);
  EXPECT_TRUE(given.assumptions.empty());
}

// CASES R17.
TEST(ConfigReaderTest, R17DenseLayersAreWhereTheConfigurationSays) {
  const auto moe = [](const ReadConfigResult& read) {
    std::vector<bool> is_moe;
    for (const auto& layer : read.config.layers) is_moe.push_back(layer.is_moe);
    return is_moe;
  };
  EXPECT_THAT(moe(Read(HfConfig(R"(,"mlp_only_layers":[0,2])"))),
              ElementsAre(false, true, false, true));
  EXPECT_THAT(moe(Read(HfConfig(R"(,"decoder_sparse_step":2)"))),
              ElementsAre(false, true, false, true));
  EXPECT_THAT(ErrorOf(HfConfig(R"(,"mlp_only_layers":[4])")),
              HasSubstr("outside 0 to 3"));
  EXPECT_THAT(ErrorOf(HfConfig(R"(,"decoder_sparse_step":0)")),
              HasSubstr("decoder_sparse_step is 0"));
}

TEST(ConfigReaderTest, BothSpellingsOfRotaryScalingAreRead) {
  const auto old_style = Read(HfConfig(
      R"(,"rope_theta":5e5,"rope_scaling":{"type":"linear","factor":4.0})"));
  const auto new_style = Read(
      HfConfig(R"(,"rope_parameters":{"rope_theta":5e5,"rope_type":"linear",)"
               R"("factor":4})"));
  for (const auto* read : {&old_style, &new_style}) {
    EXPECT_EQ(read->config.rope.base, 5e5);
    EXPECT_EQ(read->config.rope.scaling.type, RopeScalingType::kLinear);
    EXPECT_EQ(read->config.rope.scaling.factor, 4.0);
  }
}

TEST(ConfigReaderTest, SlidingWindowsFollowLayerTypesOrTheOlderKeys) {
  const auto windows = [](const ReadConfigResult& read) {
    std::vector<size_t> sizes;
    for (const auto& layer : read.config.layers) {
      sizes.push_back(layer.sliding_window);
    }
    return sizes;
  };
  EXPECT_THAT(
      windows(Read(HfConfig(
          R"(,"sliding_window":16,"layer_types":["full_attention",)"
          R"("sliding_attention","full_attention","sliding_attention"])"))),
      ElementsAre(0, 16, 0, 16));
  EXPECT_THAT(
      windows(Read(HfConfig(R"(,"sliding_window":16,"use_sliding_window":true,)"
                            R"("max_window_layers":3)"))),
      ElementsAre(0, 0, 0, 16));
  EXPECT_THAT(windows(Read(HfConfig(
                  R"(,"sliding_window":16,"use_sliding_window":false)"))),
              ElementsAre(0, 0, 0, 0));
}

// What would change the math and is not built is an error, never ignored.
TEST(ConfigReaderTest, WhatIsNotBuiltIsRefused) {
  EXPECT_THAT(ErrorOf(HfConfig(R"(,"hidden_act":"gelu")")), HasSubstr("gelu"));
  EXPECT_THAT(ErrorOf(HfConfig(R"(,"clip_qkv":8.0)")), HasSubstr("clip_qkv"));
  EXPECT_THAT(ErrorOf(HfConfig(R"(,"rope_scaling":{"type":"longrope"})")),
              HasSubstr("longrope"));
  EXPECT_THAT(ErrorOf(HfConfig(R"(,"quantization_config":)"
                               R"({"quant_method":"awq"})")),
              HasSubstr("awq"));
  EXPECT_THAT(ErrorOf(HfConfig("", "GPT2LMHeadModel")),
              HasSubstr("it runs llama, mixtral"));
}

TEST(ConfigReaderTest, AbsurdNumbersAreRefused) {
  EXPECT_THAT(ErrorOf(HfConfig(R"(,"num_key_value_heads":3)")),
              HasSubstr("cannot share 3"));
  EXPECT_THAT(ErrorOf(HfConfig(R"(,"head_dim":0)")),
              HasSubstr("head dimension is 0"));
  EXPECT_THAT(ErrorOf(HfConfig(R"(,"rms_norm_eps":"small")")),
              HasSubstr("expected a number"));
  EXPECT_THAT(ErrorOf("[1]"), HasSubstr("expected an object"));
  EXPECT_THAT(ErrorOf(std::string(100000, '[')), HasSubstr("nested deeper"));
  EXPECT_THAT(ErrorOf("{"), HasSubstr("not valid JSON"));
}

// Frequencies of the scalings against their formulas at both ends.
TEST(RopeScalingTest, EndsOfTheScalingsAreKeptOrStretched) {
  RopeConfig rope{.base = 10000, .dim = 64};
  const auto plain = RopeInverseFrequencies(rope);
  rope.scaling = {
      .type = RopeScalingType::kYarn, .factor = 4, .original_context = 4096};
  const auto yarn = RopeInverseFrequencies(rope);
  EXPECT_DOUBLE_EQ(yarn.front(), plain.front());
  EXPECT_DOUBLE_EQ(yarn.back(), plain.back() / 4);
  EXPECT_DOUBLE_EQ(RopeMagnitude(rope), 0.1 * std::log(4.0) + 1);
  rope.scaling.type = RopeScalingType::kLlama3;
  const auto llama3 = RopeInverseFrequencies(rope);
  EXPECT_DOUBLE_EQ(llama3.front(), plain.front());
  EXPECT_DOUBLE_EQ(llama3.back(), plain.back() / 4);
  EXPECT_DOUBLE_EQ(RopeMagnitude(rope), 1.0);
}

}  // namespace
}  // namespace muster::model

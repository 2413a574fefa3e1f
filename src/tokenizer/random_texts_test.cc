// 300 random texts against the ids that Hugging Face `tokenizers` gives them.
// Fixtures: tools/oracles/tokenizer_oracle.py.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tokenizer/test_files.h"

namespace muster::tokenizer {
namespace {

using nlohmann::json;

json Fixture(const std::string& name) {
  return json::parse(ReadTestFile(InSource("src/tokenizer/testdata/" + name)));
}

std::string Digest(const std::vector<TokenId>& ids) {
  uint64_t value = 0xCBF29CE484222325;
  for (const TokenId id : ids) {
    value = (value ^ static_cast<uint64_t>(id)) * 0x100000001B3;
  }
  return fmt::format("{}:{:016x}", ids.size(), value);
}

void ExpectDemoIds(const Tokenizer& tokenizer) {
  const json cases = Fixture("demo_ids.json");
  ASSERT_EQ(cases.size(), 300u);
  for (const json& c : cases) {
    const auto text = c.at("text").get<std::string>();
    const auto ids = tokenizer.Encode(text, {.add_bos_eos = false});
    EXPECT_THAT(
        ids, testing::ElementsAreArray(c.at("ids").get<std::vector<TokenId>>()))
        << c.at("text");
    EXPECT_EQ(tokenizer.Decode(ids), c.value("decoded", text));
  }
}

class RandomTexts : public testing::TestWithParam<const char*> {};

TEST_P(RandomTexts, GiveTheIdsOfTheReference) {
  const std::string name = GetParam();
  const std::string tokenizer_json = OutsideVocabulary(name);
  if (tokenizer_json.empty()) {
    GTEST_SKIP() << "needs MUSTER_TOKENIZERS with " << name;
  }
  const auto tokenizer = FromTokenizerJson(tokenizer_json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const json texts = Fixture("demo_ids.json");
  for (const json& vocabulary : Fixture("random_ids.json")) {
    if (vocabulary.at("vocabulary") != name) continue;
    const json& digests = vocabulary.at("digests");
    ASSERT_EQ(digests.size(), texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto ids = (*tokenizer)
                           ->Encode(texts[i].at("text").get<std::string>(),
                                    {.add_bos_eos = false});
      EXPECT_EQ(Digest(ids), digests[i])
          << name << ", text " << i << ": " << texts[i].at("text")
          << testing::PrintToString(ids);
    }
    return;
  }
  FAIL() << "no fixture for " << name;
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, RandomTexts,
                         testing::Values("claude", "deepseek_v3", "gemma3",
                                         "gpt4o", "gptoss", "llama2", "llama3",
                                         "qwen2_5", "qwen3"));

TEST(DemoTokenizer, FromTokenizerJsonGivesTheIdsOfTheReference) {
  const std::string tokenizer_json =
      ReadTestFile(InSource("models/demo/hf/tokenizer.json"));
  if (tokenizer_json.empty()) GTEST_SKIP() << "needs models/demo/hf";
  const auto tokenizer = FromTokenizerJson(tokenizer_json);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  ExpectDemoIds(**tokenizer);
}

TEST(DemoTokenizer, FromGgufGivesTheIdsOfTheReference) {
  const std::string path = InSource("models/demo/demo-moe-q8_0.gguf");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs " << path;
  const auto tokenizer = FromModel(path);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  ExpectDemoIds(**tokenizer);
}

}  // namespace
}  // namespace muster::tokenizer

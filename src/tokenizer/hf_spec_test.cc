#include "tokenizer/hf_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

json Bpe() {
  return json::parse(R"({
    "added_tokens": [
      {"id": 5, "content": "<|end|>", "special": true},
      {"id": 6, "content": "<mask>", "special": false, "lstrip": true,
       "normalized": false}],
    "normalizer": null,
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false},
    "post_processor": null,
    "decoder": {"type": "ByteLevel"},
    "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "Ġ": 2, "Ġa": 3, "ab": 4},
              "merges": ["Ġ a", ["a", "b"]]}})");
}

json Unigram() {
  return json::parse(R"({
    "added_tokens": [{"id": 0, "content": "<unk>", "special": true}],
    "pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
                      "prepend_scheme": "always"},
    "decoder": {"type": "Metaspace", "replacement": "▁",
                "prepend_scheme": "always"},
    "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true,
              "vocab": [["<unk>", 0], ["▁", -2], ["a", -3], ["▁ab", -9],
                        ["b", -3.5], ["ab", -5], ["<0x63>", 0]]}})");
}

Status ErrorOf(const json& tokenizer_json) {
  const std::string text = tokenizer_json.dump();
  auto spec = SpecFromHf({.tokenizer_json = text});
  if (!spec.ok()) return spec.status();
  return MakeTokenizer(std::move(*spec)).status();
}

std::unique_ptr<Tokenizer> Make(const json& tokenizer_json,
                                const std::string& config = "",
                                const std::string& generation_config = "") {
  const std::string text = tokenizer_json.dump();
  auto spec = SpecFromHf({.tokenizer_json = text,
                          .tokenizer_config_json = config,
                          .generation_config_json = generation_config});
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return MakeTokenizer(std::move(*spec)).value();
}

TEST(HfSpecTest, BothFormsOfMergesAreRead) {
  EXPECT_THAT(Make(Bpe())->Encode("ab a"), ElementsAre(4, 3));
}

TEST(HfSpecTest, AddedTokensTakeTheSpaceBeforeThem) {
  EXPECT_THAT(Make(Bpe())->Encode("a  <mask>b"), ElementsAre(0, 6, 1));
}

TEST(HfSpecTest, UnigramTakesTheBestPath) {
  const auto tokenizer = Make(Unigram());
  EXPECT_THAT(tokenizer->Encode("ab"), ElementsAre(1, 5));
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode("ab b")), "ab b");
}

TEST(HfSpecTest, UnigramFallsBackToBytesAndToUnknown) {
  EXPECT_THAT(Make(Unigram())->Encode("acdd"), ElementsAre(1, 2, 6, 0));
  EXPECT_EQ(Make(Unigram())->TokenBytes(6), "c");
}

TEST(HfSpecTest, UnknownComponentsAreRefusedByName) {
  const auto expect = [](const char* part, const json& value) {
    json changed = Bpe();
    changed[part] = value;
    const Status status = ErrorOf(changed);
    EXPECT_EQ(status.code(), Code::kUnsupported) << value;
    EXPECT_THAT(status.message(), HasSubstr(value["type"])) << value;
  };
  expect("normalizer", {{"type", "StripAccents"}});
  expect("normalizer",
         {{"type", "Precompiled"}, {"precompiled_charsmap", "A"}});
  expect("pre_tokenizer", {{"type", "BertPreTokenizer"}});
  expect("post_processor", {{"type", "RobertaProcessing"}});
  expect("decoder", {{"type", "WordPiece"}});
  expect("model", {{"type", "WordPiece"}});
}

TEST(HfSpecTest, ASplitBehindByteLevelIsRefused) {
  json changed = Bpe();
  changed["pre_tokenizer"] = json::parse(R"({"type": "Sequence",
    "pretokenizers": [{"type": "ByteLevel"}, {"type": "Digits"}]})");
  EXPECT_THAT(ErrorOf(changed).message(), HasSubstr("Digits"));
}

TEST(HfSpecTest, DeepSequencesAreRefused) {
  json nested = {{"type", "NFC"}};
  for (int i = 0; i < 100; ++i) {
    nested = {{"type", "Sequence"}, {"normalizers", json::array({nested})}};
  }
  json changed = Bpe();
  changed["normalizer"] = nested;
  EXPECT_EQ(ErrorOf(changed).code(), Code::kCorrupt);
}

TEST(HfSpecTest, BrokenFilesAreRefused) {
  const auto change = [](const char* pointer, const json& value) {
    json changed = Bpe();
    changed[json::json_pointer(pointer)] = value;
    return ErrorOf(changed).code();
  };
  EXPECT_EQ(change("/model/vocab/a", -1), Code::kCorrupt);
  EXPECT_EQ(change("/model/vocab/a", 1), Code::kCorrupt);
  EXPECT_EQ(change("/model/vocab/a", 2'000'000'000), Code::kCorrupt);
  EXPECT_EQ(change("/model/vocab", json::array()), Code::kCorrupt);
  EXPECT_EQ(change("/model/merges/0", "ab"), Code::kCorrupt);
  EXPECT_EQ(change("/model/merges/0", "b b"), Code::kCorrupt);
  EXPECT_EQ(change("/added_tokens/0/id", 2'000'000'000), Code::kCorrupt);
  EXPECT_EQ(change("/added_tokens/0", 7), Code::kCorrupt);
  EXPECT_EQ(change("/model", nullptr), Code::kCorrupt);
  EXPECT_EQ(SpecFromHf({.tokenizer_json = "{"}).status().code(),
            Code::kCorrupt);
  EXPECT_EQ(SpecFromHf({}).status().code(), Code::kNotFound);
}

TEST(HfSpecTest, TheTemplateGivesPrefixAndSuffix) {
  json changed = Bpe();
  changed["post_processor"] = json::parse(R"({"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<|end|>"}}, {"Sequence": {"id": "A"}},
               {"SpecialToken": {"id": "<mask>"}}],
    "special_tokens": {"<|end|>": {"ids": [5]}, "<mask>": {"ids": [6]}}})");
  EXPECT_THAT(Make(changed)->Encode("a"), ElementsAre(5, 0, 6));
  EXPECT_THAT(
      Make(changed, R"({"bos_token": "<|end|>", "add_bos_token": false})")
          ->Encode("a"),
      ElementsAre(0, 6));
}

TEST(HfSpecTest, TheConfigGivesBosAndEos) {
  const auto tokenizer =
      Make(Bpe(), R"({"bos_token": {"content": "<|end|>"}, "eos_token": "ab",
                      "add_bos_token": true})",
           R"({"eos_token_id": [1, 999]})");
  EXPECT_THAT(tokenizer->Encode("a"), ElementsAre(5, 0));
  EXPECT_EQ(tokenizer->eos(), 4);
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(4));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(1));
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(5));
}

}  // namespace
}  // namespace muster::tokenizer

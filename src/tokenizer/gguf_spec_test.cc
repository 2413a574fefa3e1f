#include "tokenizer/gguf_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

using formats::Metadata;
using formats::MetadataValue;
using testing::ElementsAre;
using testing::HasSubstr;

using Entries = std::map<std::string, MetadataValue>;
using Strings = std::vector<std::string>;

Metadata MakeMetadata(const Entries& entries) {
  Metadata metadata;
  for (const auto& [key, value] : entries) {
    EXPECT_TRUE(metadata.Add("tokenizer.ggml." + key, value).ok());
  }
  return metadata;
}

// "Ġ" is the space of the byte alphabet.
Entries ByteLevel() {
  return {{"model", std::string("gpt2")},
          {"pre", std::string("qwen2")},
          {"tokens", Strings{"a", "b", "Ġ", "Ġa", "<|im_end|>", "<|x|>"}},
          {"token_type", std::vector<uint64_t>{1, 1, 1, 1, 3, 4}},
          {"merges", Strings{"Ġ a"}},
          {"eos_token_id", uint64_t{4}}};
}

Entries SentencePiece() {
  return {{"model", std::string("llama")},
          {"tokens", Strings{"<unk>", "<s>", "</s>", "<0x0A>", "▁", "a", "▁a"}},
          {"token_type", std::vector<uint64_t>{2, 3, 3, 6, 1, 1, 1}},
          {"scores", std::vector<double>{0, 0, 0, 0, -1, -2, -3}}};
}

Entries With(Entries entries, const std::string& key, MetadataValue value) {
  entries[key] = std::move(value);
  return entries;
}

Entries Without(Entries entries, const std::string& key) {
  entries.erase(key);
  return entries;
}

Status ErrorOf(const Entries& entries) {
  auto spec = SpecFromGguf(MakeMetadata(entries));
  if (!spec.ok()) return spec.status();
  return MakeTokenizer(std::move(*spec)).status();
}

std::unique_ptr<Tokenizer> Make(const Entries& entries) {
  auto spec = SpecFromGguf(MakeMetadata(entries));
  EXPECT_TRUE(spec.ok()) << spec.status().message();
  return MakeTokenizer(std::move(*spec)).value();
}

TEST(GgufSpecTest, ByteLevelTokensAreReadAsBytes) {
  const auto tokenizer = Make(ByteLevel());
  EXPECT_THAT(tokenizer->Encode("b a"), ElementsAre(1, 3));
  EXPECT_EQ(tokenizer->TokenBytes(3), " a");
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(4));
  EXPECT_TRUE(tokenizer->warnings().empty());
}

TEST(GgufSpecTest, TokensThatLookLikeControlAreControl) {
  EXPECT_TRUE(Make(ByteLevel())->IsControl(5));
}

TEST(GgufSpecTest, AnUnknownPreTokenizerIsRefusedByName) {
  const Status status = ErrorOf(With(ByteLevel(), "pre", std::string("qwen9")));
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("'qwen9'"));
}

TEST(GgufSpecTest, AMissingPreTokenizerIsSaidAloud) {
  EXPECT_EQ(Make(Without(ByteLevel(), "pre"))->warnings().size(), 1u);
}

TEST(GgufSpecTest, AnUnknownModelIsRefusedByName) {
  const Status status =
      ErrorOf(With(ByteLevel(), "model", std::string("bert")));
  EXPECT_EQ(status.code(), Code::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("'bert'"));
}

TEST(GgufSpecTest, AFileWithoutTokenizerIsNotFound) {
  EXPECT_EQ(ErrorOf({}).code(), Code::kNotFound);
}

TEST(GgufSpecTest, BrokenEntriesAreRefused) {
  const auto corrupt = [](const Entries& entries) {
    return ErrorOf(entries).code() == Code::kCorrupt;
  };
  EXPECT_TRUE(corrupt(Without(ByteLevel(), "tokens")));
  EXPECT_TRUE(corrupt(With(ByteLevel(), "tokens", uint64_t{5})));
  EXPECT_TRUE(corrupt(Without(ByteLevel(), "merges")));
  EXPECT_TRUE(corrupt(With(ByteLevel(), "merges", Strings{"ab"})));
  EXPECT_TRUE(corrupt(With(ByteLevel(), "merges", Strings{"a b"})));
  EXPECT_TRUE(corrupt(With(ByteLevel(), "eos_token_id", uint64_t{6})));
  EXPECT_TRUE(
      corrupt(With(ByteLevel(), "token_type", std::vector<uint64_t>{1, 1})));
  EXPECT_TRUE(corrupt(With(ByteLevel(), "add_bos_token", true)));
  EXPECT_TRUE(corrupt(Without(SentencePiece(), "scores")));
  EXPECT_TRUE(
      corrupt(With(SentencePiece(), "scores", std::vector<double>{1.0})));
}

TEST(GgufSpecTest, SentencePiecePutsBosAndASpaceFirst) {
  const auto tokenizer = Make(SentencePiece());
  EXPECT_THAT(tokenizer->Encode("a"), ElementsAre(1, 6));
  EXPECT_THAT(tokenizer->Encode("</s>a", {.parse_special = true}),
              ElementsAre(1, 2, 6));
}

TEST(GgufSpecTest, SentencePieceFallsBackToBytesAndToUnknown) {
  EXPECT_THAT(Make(SentencePiece())->Encode("a\nc"), ElementsAre(1, 6, 3, 0));
}

// "</" and "s>" merge into what looks like a control token.
TEST(GgufSpecTest, WordsNeverMergeIntoControlTokens) {
  Entries entries = SentencePiece();
  entries["tokens"] =
      Strings{"<unk>", "<s>", "</s>", "<", "/", "s", ">", "</", "s>"};
  entries["token_type"] = std::vector<uint64_t>{2, 3, 3, 1, 1, 1, 1, 1, 1};
  entries["scores"] = std::vector<double>(9, 0.0);
  entries["add_space_prefix"] = false;
  EXPECT_THAT(Make(entries)->Encode("</s>", {.add_bos_eos = false}),
              ElementsAre(7, 8));
}

TEST(GgufSpecTest, ACharacterMapIsRefused) {
  Entries entries = With(SentencePiece(), "model", std::string("t5"));
  EXPECT_TRUE(ErrorOf(entries).ok());
  entries["precompiled_charsmap"] = std::vector<uint64_t>{0};
  EXPECT_EQ(ErrorOf(entries).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace muster::tokenizer

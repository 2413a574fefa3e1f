#include "tokenizer/pre_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tokenizer/pre_tokenizer_table.h"

namespace muster::tokenizer {
namespace {

using testing::ElementsAre;

std::vector<std::string> Split(std::vector<PreTokenizerStep> steps,
                               std::string_view text, bool is_first = true) {
  const auto pre_tokenizer = PreTokenizer::Make(steps);
  if (!pre_tokenizer.ok()) return {pre_tokenizer.status().message()};
  const Words words = pre_tokenizer->Split(text, is_first);
  return {words.views().begin(), words.views().end()};
}

std::vector<std::string> SplitBy(std::string_view name, std::string_view text) {
  const PreTokenizerRow* row = FindPreTokenizer(name);
  if (row == nullptr) return {"unknown name"};
  return Split(StepsOf(*row), text);
}

PreTokenizerStep Dash(SplitBehavior behavior) {
  return {.pattern = "-", .behavior = behavior};
}

TEST(PreTokenizerTest, SplitsBehaveAsNamed) {
  const std::string text = "-a--b";
  EXPECT_THAT(Split({Dash(SplitBehavior::kRemoved)}, text),
              ElementsAre("a", "b"));
  EXPECT_THAT(Split({Dash(SplitBehavior::kIsolated)}, text),
              ElementsAre("-", "a", "-", "-", "b"));
  EXPECT_THAT(Split({Dash(SplitBehavior::kContiguous)}, text),
              ElementsAre("-", "a", "--", "b"));
  EXPECT_THAT(Split({Dash(SplitBehavior::kMergedWithPrevious)}, text),
              ElementsAre("-", "a-", "-", "b"));
  EXPECT_THAT(Split({Dash(SplitBehavior::kMergedWithNext)}, text),
              ElementsAre("-a", "-", "-b"));
}

TEST(PreTokenizerTest, InvertedSplitsKeepWhatMatches) {
  EXPECT_THAT(Split({{.pattern = "[a-z]+",
                      .invert = true,
                      .behavior = SplitBehavior::kRemoved}},
                    "ab, cd"),
              ElementsAre("ab", "cd"));
}

TEST(PreTokenizerTest, BrokenUtf8IsAWordByItself) {
  EXPECT_THAT(SplitBy("qwen2",
                      "ab\xFF\xFE"
                      "cd"),
              ElementsAre("ab", "\xFF\xFE", "cd"));
}

TEST(PreTokenizerTest, MetaspacePrependsWhereItIsToldTo) {
  const auto split = [](Prepend prepend, bool is_first) {
    return Split({{.kind = PreTokenizerKind::kMetaspace,
                   .prepend = prepend,
                   .split = true}},
                 "a b", is_first);
  };
  EXPECT_THAT(split(Prepend::kFirst, true), ElementsAre("▁a", "▁b"));
  EXPECT_THAT(split(Prepend::kFirst, false), ElementsAre("a", "▁b"));
  EXPECT_THAT(split(Prepend::kAlways, false), ElementsAre("▁a", "▁b"));
  EXPECT_THAT(split(Prepend::kNever, true), ElementsAre("a", "▁b"));
}

TEST(PreTokenizerTest, APrefixSpaceIsNotDoubled) {
  EXPECT_THAT(Split({{.kind = PreTokenizerKind::kPrefixSpace}}, "a"),
              ElementsAre(" a"));
  EXPECT_THAT(Split({{.kind = PreTokenizerKind::kPrefixSpace}}, " a"),
              ElementsAre(" a"));
}

// The text that tells pre-tokenizers apart (CASES K08).
TEST(PreTokenizerTest, FamiliesCutTheSameTextTheirOwnWay) {
  const std::string text = "It's 2024-12 XMLHttp  ok";
  EXPECT_THAT(
      SplitBy("gpt-2", text),
      ElementsAre("It", "'s", " 2024", "-", "12", " XMLHttp", " ", " ok"));
  EXPECT_THAT(SplitBy("llama-bpe", text),
              ElementsAre("It", "'s", " ", "202", "4", "-", "12", " XMLHttp",
                          " ", " ok"));
  EXPECT_THAT(SplitBy("qwen2", text),
              ElementsAre("It", "'s", " ", "2", "0", "2", "4", "-", "1", "2",
                          " XMLHttp", " ", " ok"));
  EXPECT_THAT(
      SplitBy("gpt-4o", text),
      ElementsAre("It's", " ", "202", "4", "-", "12", " XMLHttp", " ", " ok"));
  EXPECT_THAT(SplitBy("starcoder", text),
              ElementsAre("It", "'s", " ", "2", "0", "2", "4", "-", "1", "2",
                          " XMLHttp", " ", " ok"));
}

TEST(PreTokenizerTest, KimiKeepsChineseApartFromOtherLetters) {
  EXPECT_THAT(SplitBy("kimi-k2", "abc中文def ABcDE、ok's"),
              ElementsAre("abc", "中文", "def", " ABc", "DE", "、ok's"));
  EXPECT_THAT(SplitBy("kimi-k2", "ABあいCD EF"),
              ElementsAre("ABあい", "CD", " EF"));
}

TEST(PreTokenizerTest, BailingEndsNewlinesOneByOne) {
  EXPECT_THAT(SplitBy("bailingmoe", "a \n\nb"), ElementsAre("a", " \n\n", "b"));
}

TEST(PreTokenizerTest, EveryNameCompilesAndCutsNothingAway) {
  const std::string text = "Hello world! Café déjà vu — 123 😊\n\n  中文 x_1";
  for (const PreTokenizerRow& row : AllPreTokenizers()) {
    std::string joined;
    for (const std::string& word : SplitBy(row.name, text)) joined += word;
    EXPECT_EQ(joined, text) << row.name;
  }
}

TEST(PreTokenizerTest, NamesThatAreNotKnownAreNotGuessed) {
  EXPECT_EQ(FindPreTokenizer("qwen9"), nullptr);
  EXPECT_EQ(FindPreTokenizer(""), nullptr);
}

}  // namespace
}  // namespace muster::tokenizer

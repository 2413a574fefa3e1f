// A million equal characters of any kind (CASES K01): no quadratic time, no
// deep recursion, for each way to cut words and each algorithm.
#include <gtest/gtest.h>

#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tokenizer/normalize_unicode.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/tiny_vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace muster::tokenizer {
namespace {

#if defined(__SANITIZE_ADDRESS__)
#define MUSTER_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MUSTER_SANITIZED
#endif
#endif

// Sanitizers cost about a factor of ten: a tenth of the text in the same time.
#if defined(MUSTER_SANITIZED)
constexpr size_t kMillion = 100'000;
#else
constexpr size_t kMillion = 1'000'000;
#endif
constexpr double kLimitSeconds = 1;

struct CharacterKind {
  const char* name;
  std::string text;
};

const std::vector<CharacterKind>& Kinds() {
  static const auto* kinds = new std::vector<CharacterKind>{
      {"A", "A"},
      {"space", " "},
      {"newline", "\n"},
      {"dot", "."},
      {"CJK", "中"},
      {"emoji", "😀"},
      {"mark", "\u0301"},
      {"digit", "7"},
      {"tab", "\t"},
      {"alternating case", "aA"},
      {"space and letter", " a"},
      {"apostrophe", "'s"},
  };
  return *kinds;
}

std::string Repeated(const std::string& text, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += text;
  return out;
}

// Of this process: other programs on the machine do not count.
double CpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

void ExpectFast(const Tokenizer& tokenizer) {
  for (const auto& [name, text] : Kinds()) {
    const std::string million = Repeated(text, kMillion);
    const double start = CpuSeconds();
    const auto ids = tokenizer.Encode(million);
    EXPECT_LT(CpuSeconds() - start, kLimitSeconds) << name;
    EXPECT_GT(ids.size(), 1000u) << name;
  }
}

// A fifth of a million, to keep the test short.
TEST(LinearTime, AllWaysToCutWordsAreLinear) {
  std::set<const std::string_view*> seen;
  for (const PreTokenizerRow& row : AllPreTokenizers()) {
    if (!seen.insert(row.patterns.data()).second) continue;
    const auto pre_tokenizer = PreTokenizer::Make(StepsOf(row));
    ASSERT_TRUE(pre_tokenizer.ok()) << pre_tokenizer.status().message();
    for (const auto& [name, text] : Kinds()) {
      const std::string repeated = Repeated(text, kMillion / 5);
      const double start = CpuSeconds();
      const Words words = pre_tokenizer->Split(repeated, true);
      EXPECT_LT(CpuSeconds() - start, kLimitSeconds / 2)
          << row.name << ' ' << name;
      size_t size = 0;
      for (const std::string_view word : words.views()) size += word.size();
      EXPECT_EQ(size, repeated.size()) << row.name << ' ' << name;
    }
  }
}

TEST(LinearTime, ByteLevelBpeIsLinear) {
  TinyByteLevel tiny("llama-bpe");
  for (const auto& [name, text] : Kinds()) tiny.MergeAll(text, 5);
  const auto tokenizer = MakeTokenizer(std::move(tiny.spec()));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  ExpectFast(**tokenizer);
}

std::vector<std::pair<std::string, float>> RepeatedWords() {
  std::vector<std::pair<std::string, float>> words = {{"\xE2\x96\x81", -1}};
  float score = -2;
  for (const auto& [name, text] : Kinds()) {
    std::string word = text == " " ? "\xE2\x96\x81" : text;
    for (int i = 0; i < 4; ++i, word += word) words.push_back({word, --score});
  }
  return words;
}

TEST(LinearTime, SentencePieceBpeIsLinear) {
  const auto tokenizer = MakeTokenizer(
      TinySentencePiece(Algorithm::kMergeScores, RepeatedWords()));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  ExpectFast(**tokenizer);
}

TEST(LinearTime, UnigramIsLinear) {
  const auto tokenizer =
      MakeTokenizer(TinySentencePiece(Algorithm::kUnigram, RepeatedWords()));
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  ExpectFast(**tokenizer);
}

TEST(LinearTime, MarksOutOfOrderAreNormalizedInTime) {
  const std::string marks = Repeated("\u0301\u0316", kMillion);
  const double start = CpuSeconds();
  const std::string normalized = NormalizeUnicode(marks, NormalForm::kNfc);
  EXPECT_LT(CpuSeconds() - start, kLimitSeconds);
  EXPECT_EQ(normalized.size(), marks.size());
  EXPECT_TRUE(normalized.starts_with("\u0316\u0316"));
}

}  // namespace
}  // namespace muster::tokenizer

#include "tokenizer/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tokenizer/regex_syntax.h"

namespace muster::tokenizer {
namespace {

using testing::ElementsAre;

std::vector<std::string> Matches(std::string_view pattern,
                                 const std::string& text) {
  const auto regex = Regex::Compile(pattern);
  if (!regex.ok()) return {regex.status().message()};
  RegexScratch scratch;
  std::vector<Span> spans;
  regex->FindAll(text, scratch, spans);
  std::vector<std::string> out;
  for (const Span& span : spans) {
    out.push_back(text.substr(span.begin, span.end - span.begin));
  }
  return out;
}

TEST(RegexTest, WhiteSpaceIsThatOfUnicodeNotOfPcre2) {
  EXPECT_THAT(Matches("\\s+", "a\u3000\u0085b\u180ec"),
              ElementsAre("\u3000\u0085"));
  EXPECT_THAT(Matches("[^\\s]+", " \u180e\u2028"), ElementsAre("\u180e"));
}

TEST(RegexTest, WordCharactersIncludeMarks) {
  EXPECT_THAT(Matches("\\w+", "e\u0301_1!x"), ElementsAre("e\u0301_1", "x"));
}

TEST(RegexTest, DollarIsTheEndOfALine) {
  EXPECT_THAT(Matches("\\S$", "ab\ncd"), ElementsAre("b", "d"));
}

TEST(RegexTest, ScriptsAreNotScriptExtensions) {
  // U+3001 is used with Han, but it is not Han.
  EXPECT_THAT(Matches("\\p{Han}+", "中、文"), ElementsAre("中", "文"));
}

TEST(RegexTest, CaseIsFoldedBeyondAscii) {
  EXPECT_THAT(Matches("(?i:'s)", "'S 'ſ"), ElementsAre("'S", "'ſ"));
}

TEST(RegexTest, EmptyMatchesMoveOnByWholeCharacters) {
  EXPECT_EQ(Matches("x*", "中x").size(), 2u);
  EXPECT_EQ(Matches("(?=中)", "中中").size(), 2u);
}

TEST(RegexTest, ConstructsWithAnotherMeaningAreRefused) {
  for (const char* pattern :
       {"[a&&b]",  "[a[b]]", "\\p{N}{1,3}+", "a{,3}",  "\\h",
        "\\R",     "\\X",    "\\1",          "(?m:a)", "(?<name>a)",
        "(?#a)",   "[\\S]",  "[\\b]",        "\\",     "[a",
        "a{",      "\\pL",   "\\x{110000}",  "\\xg",   "(?P<n>a)",
        "\\Qa\\E", "\\K"}) {
    const auto regex = Regex::Compile(pattern);
    EXPECT_FALSE(regex.ok()) << pattern;
    EXPECT_NE(regex.status().message().find(pattern), std::string::npos);
  }
}

TEST(RegexTest, LongAndBrokenPatternsAreRefused) {
  EXPECT_FALSE(Regex::Compile(std::string(100'000, 'a')).ok());
  EXPECT_FALSE(Regex::Compile(std::string(20'000, '(')).ok());
  EXPECT_FALSE(Regex::Compile("\xFF").ok());
  EXPECT_FALSE(Regex::Compile("(?:(?:(?:a{999}){999}){999})").ok());
  EXPECT_FALSE(Regex::Literal("").ok());
}

TEST(RegexTest, AHostilePatternStopsInsteadOfRunningOn) {
  EXPECT_EQ(Matches("(?:a+)+$", std::string(5000, 'a') + "b").size(), 0u);
}

TEST(RegexTest, LiteralsAreTakenAsTheyAre) {
  const auto regex = Regex::Literal(".*▁");
  ASSERT_TRUE(regex.ok());
  RegexScratch scratch;
  std::vector<Span> spans;
  regex->FindAll("a.*▁", scratch, spans);
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].begin, 1u);
}

}  // namespace
}  // namespace muster::tokenizer

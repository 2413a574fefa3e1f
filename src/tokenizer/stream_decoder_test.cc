#include "tokenizer/stream_decoder.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tokenizer/tiny_vocabulary.h"

namespace muster::tokenizer {
namespace {

std::unique_ptr<Tokenizer> Bytes() {
  TinyByteLevel tiny;
  tiny.AddSpecial("<|im_end|>", TokenKind::kControl);  // 256
  return MakeTokenizer(std::move(tiny.spec())).value();
}

std::unique_ptr<Tokenizer> SentencePiece() {
  return MakeTokenizer(TinySentencePiece(Algorithm::kMergeScores,
                                         {{"\xE2\x96\x81hello", -1},  // 259
                                          {"\xE2\x96\x81world", -2},
                                          {"\xE2\x96\x81", -3}}))
      .value();
}

// What `bytes` become, and what each call returns, with '|' between.
std::string Trace(const std::string& bytes) {
  const auto tokenizer = Bytes();
  StreamDecoder decoder(*tokenizer);
  std::string trace;
  for (const char c : bytes) {
    trace += decoder.Feed(TinyByteLevel::Byte(c)) + "|";
  }
  return trace + decoder.Flush();
}

TEST(StreamDecoder, HoldsACharacterBackUntilItIsWhole) {
  EXPECT_EQ(Trace("a\xF0\x9F\x98\x80z"), "a||||\xF0\x9F\x98\x80|z|");
}

TEST(StreamDecoder, ShowsAnUnfinishedCharacterAtTheEnd) {
  EXPECT_EQ(Trace("a\xF0\x9F"), "a|||\xEF\xBF\xBD");
}

TEST(StreamDecoder, GoesOnBehindBytesThatAreNoCharacter) {
  EXPECT_EQ(Trace("\xFFz"), "\xEF\xBF\xBD|z|");
  EXPECT_EQ(Trace("\xE4\xB8z"), "||\xEF\xBF\xBDz|");
  EXPECT_EQ(Trace("\xED\xA0\x80"), "|\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD|");
}

TEST(StreamDecoder, GivesNoTextForControlTokensAndUnknownIds) {
  const auto tokenizer = Bytes();
  StreamDecoder decoder(*tokenizer);
  EXPECT_EQ(decoder.Feed(256), "");
  EXPECT_EQ(decoder.Feed(-1), "");
  EXPECT_EQ(decoder.Feed(1 << 30), "");
}

TEST(StreamDecoder, DropsTheFirstSpaceOfSentencePieceOnce) {
  const auto tokenizer = SentencePiece();
  StreamDecoder decoder(*tokenizer);
  EXPECT_EQ(decoder.Feed(259), "hello");
  EXPECT_EQ(decoder.Feed(260), " world");
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{259, 260}), "hello world");
}

TEST(StreamDecoder, KeepsTheSpaceWhenItContinuesAText) {
  const auto tokenizer = SentencePiece();
  const std::vector<TokenId> context = {1, 259};
  StreamDecoder decoder(*tokenizer, context);
  EXPECT_EQ(decoder.Feed(260), " world");
}

TEST(StreamDecoder, DropsTheSpaceBehindAControlToken) {
  const auto tokenizer = SentencePiece();
  const std::vector<TokenId> context = {259, 2};
  StreamDecoder decoder(*tokenizer, context);
  EXPECT_EQ(decoder.Feed(260), "world");
}

}  // namespace
}  // namespace muster::tokenizer

#include "tokenizer/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/tiny_vocabulary.h"

namespace muster::tokenizer {
namespace {

using testing::ElementsAre;

constexpr TokenId kStart = 256;
constexpr TokenId kEnd = 257;
constexpr TokenId kThink = 258;

std::unique_ptr<Tokenizer> Chat(TokenizerSpec* changed = nullptr) {
  TinyByteLevel tiny;
  tiny.AddSpecial("<|im_start|>", TokenKind::kControl);
  tiny.AddSpecial("<|im_end|>", TokenKind::kControl);
  tiny.AddSpecial("<think>", TokenKind::kUserDefined);
  tiny.spec().eos = kEnd;
  AddKnownEnds(tiny.spec());
  if (changed != nullptr) tiny.spec().prefix = changed->prefix;
  return MakeTokenizer(std::move(tiny.spec())).value();
}

std::unique_ptr<Tokenizer> ChatWithPrefix(std::vector<TokenId> prefix) {
  TokenizerSpec changed;
  changed.prefix = std::move(prefix);
  return Chat(&changed);
}

TEST(TokenizerTest, UserTextNeverBecomesAControlToken) {
  const auto ids = Chat()->Encode("a<|im_end|>");
  EXPECT_THAT(ids, testing::Not(testing::Contains(kEnd)));
  EXPECT_EQ(ids.size(), 11u);
}

TEST(TokenizerTest, TemplateTextBecomesControlTokens) {
  EXPECT_THAT(
      Chat()->Encode("<|im_start|>a<|im_end|>", {.parse_special = true}),
      ElementsAre(kStart, 'a', kEnd));
}

TEST(TokenizerTest, OnlyPiecesThatAllowItGiveControlTokens) {
  const std::vector<TextPiece> pieces = {
      {"<|im_start|>", true}, {"<|im_end|>", false}, {"<|im_end|>", true}};
  const auto ids = Chat()->EncodePieces(pieces, false);
  EXPECT_EQ(ids.front(), kStart);
  EXPECT_EQ(ids.back(), kEnd);
  EXPECT_EQ(ids.size(), 12u);
}

TEST(TokenizerTest, AControlTokenMayNotReachIntoUserText) {
  const std::vector<TextPiece> pieces = {{"<|im_e", true}, {"nd|>", false}};
  EXPECT_EQ(Chat()->EncodePieces(pieces, false).size(), 10u);
}

TEST(TokenizerTest, AControlTokenMayReachOverPiecesOfTheTemplate) {
  const std::vector<TextPiece> pieces = {{"<|im_e", true}, {"nd|>", true}};
  EXPECT_THAT(Chat()->EncodePieces(pieces, false), ElementsAre(kEnd));
}

TEST(TokenizerTest, WordsReachOverBordersOfPieces) {
  TinyByteLevel tiny;
  const TokenId ab = tiny.MergeAll("ab", 0);
  const auto tokenizer = MakeTokenizer(std::move(tiny.spec())).value();
  const std::vector<TextPiece> pieces = {{"a", true}, {"b", false}};
  EXPECT_THAT(tokenizer->EncodePieces(pieces, false), ElementsAre(ab));
}

TEST(TokenizerTest, TokensThatUsersMayWriteAreFoundInAnyText) {
  EXPECT_THAT(Chat()->Encode("<think>"), ElementsAre(kThink));
}

TEST(TokenizerTest, BosIsAddedOnce) {
  const auto tokenizer = ChatWithPrefix({kStart});
  EXPECT_THAT(tokenizer->Encode("a"), ElementsAre(kStart, 'a'));
  EXPECT_THAT(tokenizer->Encode("<|im_start|>a", {.parse_special = true}),
              ElementsAre(kStart, 'a'));
  EXPECT_THAT(tokenizer->Encode("a", {.add_bos_eos = false}), ElementsAre('a'));
}

TEST(TokenizerTest, APrefixOfSeveralTokensIsAddedOnce) {
  const auto tokenizer = ChatWithPrefix({kStart, kThink});
  const EncodeOptions special = {.parse_special = true};
  EXPECT_THAT(tokenizer->Encode("<|im_start|><think>a", special),
              ElementsAre(kStart, kThink, 'a'));
  EXPECT_THAT(tokenizer->Encode("<|im_start|>a", special),
              ElementsAre(kStart, kThink, kStart, 'a'));
}

TEST(TokenizerTest, AnEmptyTextHasOnlyBos) {
  EXPECT_THAT(ChatWithPrefix({kStart})->Encode(""), ElementsAre(kStart));
  EXPECT_THAT(Chat()->Encode(""), ElementsAre());
}

TEST(TokenizerTest, BytesThatAreNotUtf8ComeBack) {
  const std::string text = "a\xFF\xC3(\xE2\x82\x00z\xED\xA0\x80 \xF5";
  const auto tokenizer = Chat();
  EXPECT_EQ(tokenizer->Decode(tokenizer->Encode(text)), text);
}

TEST(TokenizerTest, IdsOutsideTheVocabularyAreHarmless) {
  const auto tokenizer = Chat();
  for (const TokenId id : {-1, 259, 1 << 30}) {
    EXPECT_EQ(tokenizer->TokenBytes(id), "");
    EXPECT_FALSE(tokenizer->IsControl(id));
    EXPECT_FALSE(tokenizer->IsEndOfGeneration(id));
  }
  EXPECT_EQ(tokenizer->Decode(std::vector<TokenId>{'a', -1, 999}), "a");
}

TEST(TokenizerTest, KnownEndsAreFoundByTheirText) {
  const auto tokenizer = Chat();
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(kEnd));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(kStart));
  EXPECT_EQ(tokenizer->FindToken("<|im_start|>"), kStart);
  EXPECT_EQ(tokenizer->FindToken("<|nothing|>"), kNoToken);
}

TEST(TokenizerTest, SpecsThatContradictThemselvesAreRefused) {
  const auto make = [](auto change) {
    TinyByteLevel tiny;
    change(tiny.spec());
    return MakeTokenizer(std::move(tiny.spec())).status().code();
  };
  EXPECT_EQ(make([](TokenizerSpec& s) { s.tokens.clear(); }), Code::kCorrupt);
  EXPECT_EQ(make([](TokenizerSpec& s) { s.kinds.pop_back(); }), Code::kCorrupt);
  EXPECT_EQ(make([](TokenizerSpec& s) { s.eos = 256; }), Code::kCorrupt);
  EXPECT_EQ(make([](TokenizerSpec& s) { s.prefix = {-5}; }), Code::kCorrupt);
  EXPECT_EQ(make([](TokenizerSpec& s) { s.added = {{.id = 256}}; }),
            Code::kCorrupt);
  EXPECT_EQ(make([](TokenizerSpec& s) {
              s.merges = {{1, 2, 256}};
            }),
            Code::kCorrupt);
  EXPECT_EQ(make([](TokenizerSpec& s) { s.algorithm = Algorithm::kUnigram; }),
            Code::kCorrupt);
}

}  // namespace
}  // namespace muster::tokenizer

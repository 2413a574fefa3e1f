#include "tokenizer/end_of_generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace muster::tokenizer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The ids that end an answer in a vocabulary of control tokens.
std::vector<TokenId> EndsOf(std::vector<std::string> tokens,
                            TokenKind kind = TokenKind::kControl) {
  TokenizerSpec spec;
  spec.kinds.assign(tokens.size(), kind);
  spec.tokens = std::move(tokens);
  AddKnownEnds(spec);
  return spec.end_of_generation;
}

TEST(EndOfGenerationTest, KnownNamesEndAnAnswer) {
  EXPECT_THAT(EndsOf({"<s>", "<|im_end|>", "<｜end▁of▁sentence｜>"}),
              ElementsAre(1, 2));
  EXPECT_THAT(EndsOf({"<|end|>"}), ElementsAre(0));
}

TEST(EndOfGenerationTest, AnEndOfOnePartOfManyEndsNoAnswer) {
  EXPECT_THAT(EndsOf({"<|end|>", "<|return|>", "<|call|>"}), ElementsAre(1, 2));
  EXPECT_THAT(EndsOf({"<|end|>", "<|flush|>", "<|calls|>"}), ElementsAre(1, 2));
}

TEST(EndOfGenerationTest, PlainWordsAreNoEnds) {
  EXPECT_THAT(EndsOf({"</s>", "<EOT>"}, TokenKind::kNormal), IsEmpty());
}

TEST(EndOfGenerationTest, ControlIsToldFromItsBrackets) {
  EXPECT_TRUE(LooksLikeControl("<|im_start|>"));
  EXPECT_TRUE(LooksLikeControl("<｜User｜>"));
  EXPECT_FALSE(LooksLikeControl("<think>"));
  EXPECT_FALSE(LooksLikeControl("<||>"));
  EXPECT_FALSE(LooksLikeControl("<|"));
}

}  // namespace
}  // namespace muster::tokenizer

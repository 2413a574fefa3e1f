#include "tokenizer/normalize_unicode.h"

#include <gtest/gtest.h>

#include "tokenizer/byte_alphabet.h"

namespace muster::tokenizer {
namespace {

// Examples of Unicode Standard Annex 15 and its conformance test.
TEST(NormalizeUnicodeTest, FormsDifferAsInTheAnnex) {
  const std::string text = "\u1E9B\u0323";
  EXPECT_EQ(NormalizeUnicode(text, NormalForm::kNfc), "\u1E9B\u0323");
  EXPECT_EQ(NormalizeUnicode(text, NormalForm::kNfd), "\u017F\u0323\u0307");
  EXPECT_EQ(NormalizeUnicode(text, NormalForm::kNfkc), "\u1E69");
  EXPECT_EQ(NormalizeUnicode(text, NormalForm::kNfkd), "s\u0323\u0307");
}

TEST(NormalizeUnicodeTest, ComposesLettersAndHangul) {
  EXPECT_EQ(NormalizeUnicode("e\u0301", NormalForm::kNfc), "\u00e9");
  EXPECT_EQ(NormalizeUnicode("\u1100\u1161\u11a8", NormalForm::kNfc), "\uac01");
  EXPECT_EQ(NormalizeUnicode("\u212b", NormalForm::kNfc), "\u00c5");
}

TEST(NormalizeUnicodeTest, ExcludedCompositionsStayApart) {
  EXPECT_EQ(NormalizeUnicode("\u0958", NormalForm::kNfc), "\u0915\u093c");
}

TEST(NormalizeUnicodeTest, TheLongestDecompositionFits) {
  EXPECT_EQ(NormalizeUnicode("\ufdfa", NormalForm::kNfkd).size(), 33u);
}

TEST(NormalizeUnicodeTest, BytesThatAreNotUtf8Stay) {
  EXPECT_EQ(NormalizeUnicode("e\u0301\xFF\xC3", NormalForm::kNfc),
            "\u00e9\xFF\xC3");
}

TEST(ByteAlphabetTest, EveryByteComesBack) {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += static_cast<char>(byte);
  EXPECT_EQ(FromByteAlphabet(ToByteAlphabet(bytes)), bytes);
  EXPECT_EQ(ToByteAlphabet(" \n"), "ĠĊ");
  EXPECT_EQ(FromByteAlphabet("中"), std::nullopt);
}

}  // namespace
}  // namespace muster::tokenizer

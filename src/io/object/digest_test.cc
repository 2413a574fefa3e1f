#include "io/object/digest.h"

#include <gtest/gtest.h>

namespace muster::io {
namespace {

// FIPS 180-2's and RFC 4231's.
TEST(DigestTest, KnownAnswers) {
  EXPECT_EQ(Hex(Sha256Of("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

TEST(DigestTest, PiecesGiveTheDigestOfTheWhole) {
  Sha256 sha;
  sha.Update(std::as_bytes(std::span("a", 1)));
  sha.Update({});
  sha.Update(std::as_bytes(std::span("bc", 2)));
  EXPECT_EQ(sha.Finish(), Sha256Of("abc"));
}

TEST(DigestTest, Base64GoesThereAndBack) {
  for (const std::string text : {"", "f", "fo", "foo", "foob"}) {
    const std::string coded = Base64(std::as_bytes(std::span(text)));
    if (text.empty()) continue;
    EXPECT_EQ(DecodeBase64(coded).value(), text);
  }
  EXPECT_EQ(Base64(std::as_bytes(std::span("foob", 4))), "Zm9vYg==");
  for (const char* bad : {"", "Zm9", "====", "Zm9v!g==", "Z==="}) {
    EXPECT_FALSE(DecodeBase64(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace muster::io

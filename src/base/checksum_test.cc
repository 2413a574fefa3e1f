#include "base/checksum.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/sha256.h"

namespace muster {
namespace {

// The specification's value for no bytes at all.
TEST(ChecksumTest, OfNothingIsTheSpecificationsValue) {
  EXPECT_EQ(ToHex(ChecksumOf(std::string_view())),
            "99aa06d3014798d86001c324468d497f");
}

TEST(ChecksumTest, PiecesGiveTheChecksumOfTheWhole) {
  std::vector<std::byte> bytes(5000);
  for (size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(i * 31);
  }
  for (const size_t cut : {0, 1, 17, 1023, 5000}) {
    ChecksumStream pieces;
    pieces.Update(std::span(bytes).first(cut));
    pieces.Update(std::span(bytes).subspan(cut));
    EXPECT_EQ(pieces.Get(), ChecksumOf(bytes)) << cut;
  }
}

TEST(ChecksumTest, HexGoesThereAndBackAndNothingElseIsTaken) {
  const Checksum checksum{.high = 0x0123456789abcdef, .low = 0xf};
  EXPECT_EQ(ToHex(checksum), "0123456789abcdef000000000000000f");
  EXPECT_EQ(ChecksumFromHex(ToHex(checksum)), checksum);
  EXPECT_EQ(ChecksumFromHex("0123456789abcdef000000000000000"), std::nullopt);
  EXPECT_EQ(ChecksumFromHex("0123456789ABCDEF000000000000000f"), std::nullopt);
}

// FIPS 180-2, appendix B.1.
TEST(Sha256Test, OfAbcIsTheStandardsExample) {
  const std::string text = "abc";
  Sha256 sha;
  sha.Update(std::as_bytes(std::span(text).first(1)));
  sha.Update(std::as_bytes(std::span(text).subspan(1)));
  EXPECT_EQ(Hex(sha.Finish()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace muster

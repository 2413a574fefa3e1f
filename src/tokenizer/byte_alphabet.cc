#include "tokenizer/byte_alphabet.h"

#include <array>

#include "tokenizer/unicode.h"

namespace muster::tokenizer {
namespace {

// Bytes that are printable in Latin-1 stand for themselves.
constexpr bool IsItself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

// The others, in order, are U+0100 onwards.
constexpr size_t kNumOthers = 68;

constexpr std::array<char32_t, 256> MakeAlphabet() {
  std::array<char32_t, 256> alphabet{};
  char32_t next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    alphabet[byte] = IsItself(byte) ? byte : next++;
  }
  return alphabet;
}

constexpr auto kAlphabet = MakeAlphabet();

constexpr std::array<unsigned char, kNumOthers> MakeOthers() {
  std::array<unsigned char, kNumOthers> others{};
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!IsItself(byte)) {
      others[kAlphabet[byte] - 0x100] = static_cast<unsigned char>(byte);
    }
  }
  return others;
}

constexpr auto kOthers = MakeOthers();

std::optional<char> ByteOf(char32_t code) {
  if (code < 0x100 && IsItself(static_cast<unsigned>(code))) {
    return static_cast<char>(code);
  }
  if (code >= 0x100 && code < 0x100 + kNumOthers) {
    return static_cast<char>(kOthers[code - 0x100]);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> FromByteAlphabet(std::string_view written) {
  std::string bytes;
  for (size_t pos = 0; pos < written.size();) {
    const Character c = CharacterAt(written, pos);
    if (!c.valid) return std::nullopt;
    const auto byte = ByteOf(c.code);
    if (!byte) return std::nullopt;
    bytes.push_back(*byte);
    pos += c.size;
  }
  return bytes;
}

std::string ToByteAlphabet(std::string_view bytes) {
  std::string written;
  for (const char byte : bytes) {
    AppendUtf8(kAlphabet[static_cast<unsigned char>(byte)], written);
  }
  return written;
}

}  // namespace muster::tokenizer

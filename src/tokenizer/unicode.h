// UTF-8, and the few character classes that are needed outside patterns.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace muster::tokenizer {

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";
// U+2581, how SentencePiece writes a space.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

struct Character {
  char32_t code = 0;   // meaningless where !valid
  size_t size = 1;     // bytes; 1 where !valid
  bool valid = false;  // shortest form, no surrogate, at most U+10FFFF
};

// REQUIRES: pos < text.size().
Character CharacterAt(std::string_view text, size_t pos);

// The byte length of the valid UTF-8 that `text` begins with.
size_t ValidPrefix(std::string_view text);

// Whether `text` (1 to 3 bytes) can become one valid character by bytes that
// follow.
bool IsCharacterStart(std::string_view text);

void AppendUtf8(char32_t code, std::string& out);

// The property White_Space.
bool IsWhiteSpace(char32_t code);
// Letters, marks, decimal digits, connector punctuation.
bool IsWordCharacter(char32_t code);

}  // namespace muster::tokenizer

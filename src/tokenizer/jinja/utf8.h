// Characters as Python counts them, over UTF-8. Bytes that are no UTF-8 count
// as one character each, so that no function here can fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster::jinja {

struct Character {
  char32_t code = 0;
  size_t size = 0;  // bytes, at least 1
};

// REQUIRES: pos < text.size().
Character CharacterAt(std::string_view text, size_t pos);

void AppendUtf8(char32_t code, std::string* out);
bool IsValidUtf8(std::string_view text);

size_t CountCharacters(std::string_view text);
// The byte where character `index` starts; text.size() past the end.
size_t ByteOffset(std::string_view text, size_t index);

// What str.strip() takes away.
bool IsSpace(char32_t code);
// What repr() shows as it is.
bool IsPrintable(char32_t code);
bool IsAlpha(char32_t code);
bool IsDigit(char32_t code);
bool IsUpper(char32_t code);
bool IsLower(char32_t code);
// One character to one character: 'ß' stays as it is, unlike in Python.
char32_t ToUpper(char32_t code);
char32_t ToLower(char32_t code);

}  // namespace muster::jinja

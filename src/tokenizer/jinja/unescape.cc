// Python's escapes in string literals, but for \N{...}.
#include <fmt/format.h>

#include "tokenizer/jinja/lexer.h"
#include "tokenizer/jinja/utf8.h"

namespace muster::jinja {
namespace {

int DigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

// The number in up to `max_digits` digits at *pos, which moves past them.
struct Number {
  uint32_t value = 0;
  int num_digits = 0;
};
Number ReadNumber(std::string_view text, int base, int max_digits,
                  size_t* pos) {
  Number number;
  while (number.num_digits < max_digits && *pos < text.size() &&
         DigitValue(text[*pos]) < base) {
    number.value = number.value * static_cast<uint32_t>(base) +
                   static_cast<uint32_t>(DigitValue(text[*pos]));
    ++number.num_digits;
    ++*pos;
  }
  return number;
}

Status AppendCode(std::string_view text, char escape, size_t* pos,
                  std::string* out) {
  const int digits = escape == 'x' ? 2 : escape == 'u' ? 4 : 8;
  const Number number = ReadNumber(text, 16, digits, pos);
  if (number.num_digits < digits) {
    return Corrupt(fmt::format("escape \\{} has {} digits, expected {}", escape,
                               number.num_digits, digits));
  }
  const bool surrogate = number.value >= 0xD800 && number.value < 0xE000;
  if (surrogate || number.value > 0x10FFFF) {
    return Corrupt(fmt::format("escape \\{} names no character: {:x}", escape,
                               number.value));
  }
  AppendUtf8(number.value, out);
  return Status();
}

char SimpleEscape(char c) {
  switch (c) {
    case '\\':
      return '\\';
    case '\'':
      return '\'';
    case '"':
      return '"';
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return '\0';
  }
}

}  // namespace

Result<std::string> Unescape(std::string_view text) {
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    if (text[pos] != '\\' || pos + 1 == text.size()) {
      out += text[pos++];
      continue;
    }
    const char escape = text[++pos];
    if (const char simple = SimpleEscape(escape); simple != '\0') {
      out += simple;
      ++pos;
    } else if (escape == '\n') {
      ++pos;
    } else if (DigitValue(escape) < 8) {
      AppendUtf8(ReadNumber(text, 8, 3, &pos).value, &out);
    } else if (escape == 'x' || escape == 'u' || escape == 'U') {
      ++pos;
      RETURN_IF_ERROR(AppendCode(text, escape, &pos, &out));
    } else if (escape == 'N') {
      return Corrupt("escape \\N is not supported");
    } else {
      out += '\\';
    }
  }
  return out;
}

}  // namespace muster::jinja

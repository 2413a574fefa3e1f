#include "tokenizer/jinja/lex_token.h"

#include <fmt/format.h>

#include <array>

#include "tokenizer/jinja/utf8.h"

namespace muster::jinja {
namespace {

// Longer ones first where one starts another.
constexpr std::array<std::string_view, 26> kOperators = {
    "**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
    "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ",", ";"};

bool IsDigitAt(std::string_view source, size_t pos) {
  return pos < source.size() && source[pos] >= '0' && source[pos] <= '9';
}

bool IsHexDigitAt(std::string_view source, size_t pos) {
  if (pos >= source.size()) return false;
  const char c = source[pos];
  return IsDigitAt(source, pos) || (c >= 'a' && c <= 'f') ||
         (c >= 'A' && c <= 'F');
}

bool IsOneOf(std::string_view source, size_t pos, std::string_view chars) {
  return pos < source.size() && chars.find(source[pos]) != chars.npos;
}

// Digits with single underscores between them, from `pos` on.
size_t EndOfDigits(std::string_view source, size_t pos) {
  while (IsDigitAt(source, pos)) {
    ++pos;
    if (IsOneOf(source, pos, "_") && IsDigitAt(source, pos + 1)) ++pos;
  }
  return pos;
}

// Behind the fraction and the exponent at `pos`, if there are any.
size_t EndOfFloat(std::string_view source, size_t pos) {
  if (IsOneOf(source, pos, ".") && IsDigitAt(source, pos + 1)) {
    pos = EndOfDigits(source, pos + 1);
  }
  if (!IsOneOf(source, pos, "eE")) return pos;
  const size_t digits = IsOneOf(source, pos + 1, "+-") ? pos + 2 : pos + 1;
  return IsDigitAt(source, digits) ? EndOfDigits(source, digits) : pos;
}

size_t LexNumber(std::string_view source, size_t pos, Token* out) {
  size_t end = EndOfDigits(source, pos);
  out->kind = TokenKind::kInteger;
  const bool is_hex = source[pos] == '0' && IsOneOf(source, pos + 1, "xX") &&
                      IsHexDigitAt(source, pos + 2);
  // Behind a dot it is an index, as in a.0.1.
  const bool may_be_float = pos == 0 || source[pos - 1] != '.';
  if (is_hex) {
    end = pos + 2;
    while (IsHexDigitAt(source, end)) ++end;
  } else if (may_be_float) {
    const size_t float_end = EndOfFloat(source, end);
    if (float_end > end) out->kind = TokenKind::kFloat;
    end = float_end;
  }
  out->text = source.substr(pos, end - pos);
  std::erase(out->text, '_');
  return end;
}

size_t LexName(std::string_view source, size_t pos, Token* out) {
  size_t end = pos;
  while (end < source.size()) {
    const Character c = CharacterAt(source, end);
    if (c.code != '_' && !IsAlpha(c.code) && !IsDigit(c.code)) break;
    end += c.size;
  }
  out->kind = TokenKind::kName;
  out->text = source.substr(pos, end - pos);
  return end;
}

Result<size_t> LexString(std::string_view source, size_t pos, Token* out) {
  size_t end = pos + 1;
  while (end < source.size() && source[end] != source[pos]) {
    end += source[end] == '\\' ? 2 : 1;
  }
  if (end >= source.size()) return Corrupt("string without an end");
  out->kind = TokenKind::kString;
  ASSIGN_OR_RETURN(out->text, Unescape(source.substr(pos + 1, end - pos - 1)));
  return end + 1;
}

Result<size_t> LexOperator(std::string_view source, size_t pos, Token* out) {
  const std::string_view rest = source.substr(pos);
  for (const std::string_view op : kOperators) {
    if (!rest.starts_with(op)) continue;
    out->kind = TokenKind::kOperator;
    out->text = op;
    return pos + op.size();
  }
  const size_t size = CharacterAt(source, pos).size;
  return Corrupt(
      fmt::format("unexpected character '{}'", rest.substr(0, size)));
}

}  // namespace

Result<size_t> LexToken(std::string_view source, size_t pos, Token* out) {
  if (IsDigitAt(source, pos)) return LexNumber(source, pos, out);
  if (IsOneOf(source, pos, "'\"")) return LexString(source, pos, out);
  const char32_t code = CharacterAt(source, pos).code;
  if (code == '_' || IsAlpha(code)) return LexName(source, pos, out);
  return LexOperator(source, pos, out);
}

}  // namespace muster::jinja

// Characters of URLs and headers, whatever the locale.
#pragma once

#include <string>
#include <string_view>

namespace muster::io {

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr char ToLower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
constexpr bool IsAlnum(char c) {
  return IsDigit(c) || (ToLower(c) >= 'a' && ToLower(c) <= 'z');
}
// Space or beyond; not DEL. What a header or a name may hold.
constexpr bool IsPrintable(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f;
}

inline std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = ToLower(c);
  return out;
}

// Without the spaces and tabs at both ends.
inline std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

}  // namespace muster::io

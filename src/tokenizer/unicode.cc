#include "tokenizer/unicode.h"

#include <utf8proc.h>

namespace muster::tokenizer {
namespace {

struct Lead {
  size_t size = 0;  // 0: no character begins with this byte
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xBF;
};

// Table 3-7 of the Unicode Standard, "Well-Formed UTF-8 Byte Sequences".
Lead LeadOf(unsigned char byte) {
  if (byte < 0x80) return {.size = 1};
  if (byte < 0xC2) return {};
  if (byte < 0xE0) return {.size = 2};
  if (byte == 0xE0) return {.size = 3, .second_min = 0xA0};
  if (byte == 0xED) return {.size = 3, .second_max = 0x9F};
  if (byte < 0xF0) return {.size = 3};
  if (byte == 0xF0) return {.size = 4, .second_min = 0x90};
  if (byte == 0xF4) return {.size = 4, .second_max = 0x8F};
  if (byte < 0xF4) return {.size = 4};
  return {};
}

// How many bytes of `text`, at most the character's size, fit `lead`.
size_t FittingBytes(std::string_view text, const Lead& lead) {
  if (lead.size == 0 || text.empty()) return 0;
  size_t count = 1;
  while (count < lead.size && count < text.size()) {
    const auto byte = static_cast<unsigned char>(text[count]);
    const unsigned char min = count == 1 ? lead.second_min : 0x80;
    const unsigned char max = count == 1 ? lead.second_max : 0xBF;
    if (byte < min || byte > max) break;
    ++count;
  }
  return count;
}

}  // namespace

Character CharacterAt(std::string_view text, size_t pos) {
  const auto first = static_cast<unsigned char>(text[pos]);
  if (first < 0x80) return {.code = first, .size = 1, .valid = true};
  const Lead lead = LeadOf(first);
  if (lead.size == 0 || FittingBytes(text.substr(pos), lead) != lead.size) {
    return {};
  }
  char32_t code = first & (0xFFu >> (lead.size + 1));
  for (size_t i = 1; i < lead.size; ++i) {
    code = (code << 6) | (static_cast<unsigned char>(text[pos + i]) & 0x3Fu);
  }
  return {.code = code, .size = lead.size, .valid = true};
}

size_t ValidPrefix(std::string_view text) {
  size_t pos = 0;
  while (pos < text.size()) {
    const Character c = CharacterAt(text, pos);
    if (!c.valid) break;
    pos += c.size;
  }
  return pos;
}

bool IsCharacterStart(std::string_view text) {
  if (text.empty()) return false;
  const Lead lead = LeadOf(static_cast<unsigned char>(text[0]));
  return text.size() < lead.size && FittingBytes(text, lead) == text.size();
}

void AppendUtf8(char32_t code, std::string& out) {
  utf8proc_uint8_t bytes[4];
  const auto size =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
}

bool IsWhiteSpace(char32_t code) {
  if (code >= 9 && code <= 13) return true;
  if (code >= 0x2000 && code <= 0x200A) return true;
  switch (code) {
    case 0x20:
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
      return true;
    default:
      return false;
  }
}

bool IsWordCharacter(char32_t code) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

}  // namespace muster::tokenizer

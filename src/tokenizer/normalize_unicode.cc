#include "tokenizer/normalize_unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/check.h"
#include "tokenizer/unicode.h"

namespace muster::tokenizer {
namespace {

utf8proc_propval_t CombiningClass(utf8proc_int32_t code) {
  return utf8proc_get_property(code)->combining_class;
}

bool IsAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x80;
  });
}

bool IsCompatibility(NormalForm form) {
  return form == NormalForm::kNfkc || form == NormalForm::kNfkd;
}

bool IsComposed(NormalForm form) {
  return form == NormalForm::kNfc || form == NormalForm::kNfkc;
}

void AppendDecomposed(utf8proc_int32_t code, utf8proc_option_t options,
                      std::vector<utf8proc_int32_t>& out) {
  // The longest decomposition, of U+FDFA, has 18 characters.
  std::array<utf8proc_int32_t, 32> buffer;
  int last_boundclass = 0;
  const auto count = utf8proc_decompose_char(code, buffer.data(), buffer.size(),
                                             options, &last_boundclass);
  CHECK(count >= 0 && static_cast<size_t>(count) <= buffer.size());
  out.insert(out.end(), buffer.begin(), buffer.begin() + count);
}

// utf8proc's own ordering of marks takes quadratic time on a long run of them.
void OrderMarks(std::vector<utf8proc_int32_t>& codes) {
  for (size_t i = 0; i < codes.size();) {
    size_t end = i;
    while (end < codes.size() && CombiningClass(codes[end]) != 0) ++end;
    const auto begin = codes.begin() + static_cast<ptrdiff_t>(i);
    std::stable_sort(begin, codes.begin() + static_cast<ptrdiff_t>(end),
                     [](utf8proc_int32_t a, utf8proc_int32_t b) {
                       return CombiningClass(a) < CombiningClass(b);
                     });
    i = end + 1;
  }
}

void AppendNormalized(std::string_view valid, NormalForm form,
                      std::string& out) {
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
      (IsCompatibility(form) ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(valid.size());
  for (size_t pos = 0; pos < valid.size();) {
    const Character c = CharacterAt(valid, pos);
    AppendDecomposed(static_cast<utf8proc_int32_t>(c.code), options, codes);
    pos += c.size;
  }
  OrderMarks(codes);
  if (IsComposed(form)) {
    const auto composed =
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    const auto count = utf8proc_normalize_utf32(
        codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), composed);
    CHECK_GE(count, 0);
    codes.resize(static_cast<size_t>(count));
  }
  for (const utf8proc_int32_t code : codes) {
    AppendUtf8(static_cast<char32_t>(code), out);
  }
}

}  // namespace

std::string NormalizeUnicode(std::string_view text, NormalForm form) {
  if (IsAscii(text)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const size_t valid = ValidPrefix(text);
    if (valid > 0) AppendNormalized(text.substr(0, valid), form, out);
    text.remove_prefix(valid);
    if (text.empty()) break;
    out.push_back(text[0]);
    text.remove_prefix(1);
  }
  return out;
}

}  // namespace muster::tokenizer

// Rewrites a text character by character.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/jinja/text.h"
#include "tokenizer/jinja/utf8.h"

namespace muster::jinja {

// Calls convert(code, bytes, &pending) for each character; what it appends to
// `pending` goes to *out, marked as the character is.
template <class Convert>
void AppendConverted(const Text& text, Convert convert, Text* out) {
  size_t range = 0;
  const auto& input = text.input_ranges();
  std::string pending;
  bool pending_input = false;
  const auto flush = [&] {
    out->AppendMarked(pending, pending_input);
    pending.clear();
  };
  for (size_t pos = 0; pos < text.size();) {
    const Character c = CharacterAt(text.view(), pos);
    while (range < input.size() && input[range].end <= pos) ++range;
    const bool from_input = range < input.size() && input[range].begin <= pos;
    if (from_input != pending_input) flush();
    pending_input = from_input;
    convert(c.code, text.view().substr(pos, c.size), &pending);
    pos += c.size;
  }
  flush();
}

}  // namespace muster::jinja

// Python's string methods on texts. All keep the marks of what a user gave.
#pragma once

#include <optional>
#include <vector>

#include "base/status.h"
#include "tokenizer/jinja/limits.h"
#include "tokenizer/jinja/text.h"

namespace muster::jinja {

Text Upper(const Text& text);
Text Lower(const Text& text);
Text Capitalize(const Text& text);
// An upper-case letter behind each character for which `starts_word` holds.
Text Title(const Text& text, bool (*starts_word)(char32_t previous));

enum class Side { kBoth, kLeft, kRight };
// Takes away characters that are in `chars`; nullopt: spaces.
Text Strip(const Text& text, Side side,
           const std::optional<std::string>& chars);

// `count` below zero: all.
Result<Text> Replace(Limits& limits, const Text& text, const Text& old_part,
                     const Text& new_part, int64_t count);

// Parts between `separator`, at most `max_splits` + 1 of them (below zero: no
// limit), counted from the right when `from_right`. REQUIRES: separator is not
// empty.
Result<std::vector<Text>> Split(Limits& limits, const Text& text,
                                std::string_view separator, int64_t max_splits,
                                bool from_right);
// Parts between runs of spaces.
Result<std::vector<Text>> SplitSpaces(Limits& limits, const Text& text,
                                      int64_t max_splits, bool from_right);
Result<std::vector<Text>> SplitLines(Limits& limits, const Text& text,
                                     bool keep_ends);

// Spaces or `fill` around the text up to `width` characters.
Result<Text> Pad(Limits& limits, const Text& text, int64_t width, Side text_at,
                 std::string_view fill);

}  // namespace muster::jinja

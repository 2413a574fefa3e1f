// Unicode normalization forms, in time linear in the text (n log n for a run
// of combining marks), whatever the text is.
// Source: Unicode Standard Annex 15; the tables are utf8proc's.
#pragma once

#include <string>
#include <string_view>

namespace muster::tokenizer {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

// Bytes that are not UTF-8 stay where they are.
std::string NormalizeUnicode(std::string_view text, NormalForm form);

}  // namespace muster::tokenizer

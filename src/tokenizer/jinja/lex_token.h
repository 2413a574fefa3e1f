// One token inside a tag.
#pragma once

#include "base/status.h"
#include "tokenizer/jinja/lexer.h"

namespace muster::jinja {

// Reads the token at `pos` and returns the byte behind it. Leaves out->line
// alone. The message of an error names no line.
// REQUIRES: no space at `pos`, which is inside of `source`.
Result<size_t> LexToken(std::string_view source, size_t pos, Token* out);

}  // namespace muster::jinja

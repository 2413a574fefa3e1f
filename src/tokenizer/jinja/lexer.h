// Template text to tokens, as Jinja2 reads it with trim_blocks and
// lstrip_blocks on and keep_trailing_newline off.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace muster::jinja {

enum class TokenKind {
  kData,           // text to print as it is
  kVariableBegin,  // {{
  kVariableEnd,    // }}
  kBlockBegin,     // {%
  kBlockEnd,       // %}
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 0;
  std::string text;  // of a string: after its escapes
};

// The last token is kEnd. Fails with kCorrupt; the message names the line.
Result<std::vector<Token>> Tokenize(std::string_view source);

// How messages name a token.
std::string Describe(const Token& token);

// The text between the quotes of a string literal, escapes undone.
Result<std::string> Unescape(std::string_view literal);

}  // namespace muster::jinja

#include "tokenizer/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/lex_token.h"
#include "tokenizer/jinja/utf8.h"

namespace muster::jinja {
namespace {

constexpr auto kNpos = std::string_view::npos;

// Line ends become \n and one at the very end goes away.
std::string NormalizeNewlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

// Where the spaces at the end of `text` start.
size_t TrailingSpace(std::string_view text) {
  size_t end = 0;
  for (size_t pos = 0; pos < text.size();) {
    const Character c = CharacterAt(text, pos);
    pos += c.size;
    if (!IsSpace(c.code)) end = pos;
  }
  return end;
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  Result<std::vector<Token>> Run();

 private:
  Status LexTag(char kind, size_t tag);
  Status LexRaw(size_t data_begin, size_t tag, size_t body);
  Status LexComment();
  Status LexInside(TokenKind end_kind);
  Status AddToken();
  Status CheckBracket(char bracket);

  // If the end of a tag is here, moves past it and the space it swallows.
  bool TakeEnd(std::string_view end, bool is_block);
  void AddData(std::string_view data, char sign, bool is_variable);
  void Add(TokenKind kind, std::string text) {
    tokens_.push_back({kind, line_, std::move(text)});
  }
  void MoveTo(size_t pos);
  void SkipSpace();
  // The byte `ahead` of here; '\0' past the end.
  char Peek(size_t ahead = 0) const {
    return pos_ + ahead < source_.size() ? source_[pos_ + ahead] : '\0';
  }
  Status Fail(const std::string& what) const {
    return Corrupt(fmt::format("chat template line {}: {}", line_, what));
  }

  std::string_view source_;
  size_t pos_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the last tag took the end of its line along
  std::string brackets_;       // closing brackets awaited, innermost last
  std::vector<Token> tokens_;
};

void Lexer::MoveTo(size_t pos) {
  line_ += static_cast<int>(
      std::count(source_.begin() + static_cast<ptrdiff_t>(pos_),
                 source_.begin() + static_cast<ptrdiff_t>(pos), '\n'));
  pos_ = pos;
}

void Lexer::SkipSpace() {
  size_t pos = pos_;
  while (pos < source_.size()) {
    const Character c = CharacterAt(source_, pos);
    if (!IsSpace(c.code)) break;
    pos += c.size;
  }
  MoveTo(pos);
}

void Lexer::AddData(std::string_view data, char sign, bool is_variable) {
  if (sign == '-') {
    data = data.substr(0, TrailingSpace(data));
  } else if (sign != '+' && !is_variable) {
    const size_t newline = data.rfind('\n');
    const size_t begin = newline == kNpos ? 0 : newline + 1;
    const bool at_line_start = begin > 0 || line_starting_;
    if (at_line_start && TrailingSpace(data.substr(begin)) == 0) {
      data = data.substr(0, begin);
    }
  }
  if (!data.empty()) Add(TokenKind::kData, std::string(data));
}

Result<std::vector<Token>> Lexer::Run() {
  while (pos_ < source_.size()) {
    size_t tag = pos_;
    do {
      tag = source_.find('{', tag);
      if (tag == kNpos || tag + 1 >= source_.size()) {
        tag = kNpos;
        break;
      }
      const char kind = source_[tag + 1];
      if (kind == '%' || kind == '{' || kind == '#') break;
      ++tag;
    } while (true);
    if (tag == kNpos) {
      Add(TokenKind::kData, std::string(source_.substr(pos_)));
      break;
    }
    RETURN_IF_ERROR(LexTag(source_[tag + 1], tag));
  }
  Add(TokenKind::kEnd, "");
  return std::move(tokens_);
}

Status Lexer::LexTag(char kind, size_t tag) {
  const size_t data_begin = pos_;
  const std::string_view data = source_.substr(pos_, tag - pos_);
  const char after = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
  const char sign = after == '-' || after == '+' ? after : '\0';
  const size_t inside = tag + (sign == '\0' ? 2 : 3);
  if (kind == '%') {
    RETURN_IF_ERROR(LexRaw(data_begin, tag, inside));
    if (pos_ != data_begin) return Status();
  }
  AddData(data, sign, kind == '{');
  MoveTo(inside);
  if (kind == '#') return LexComment();
  if (kind == '{') {
    Add(TokenKind::kVariableBegin, "{{");
    return LexInside(TokenKind::kVariableEnd);
  }
  Add(TokenKind::kBlockBegin, "{%");
  return LexInside(TokenKind::kBlockEnd);
}

// Stays where it is when the tag at `tag` is not `raw`.
Status Lexer::LexRaw(size_t data_begin, size_t tag, size_t inside) {
  const auto match = [&](size_t from, std::string_view word) {
    size_t pos = from;
    while (pos < source_.size() && IsSpace(CharacterAt(source_, pos).code)) {
      pos += CharacterAt(source_, pos).size;
    }
    if (source_.substr(pos, word.size()) != word) return kNpos;
    pos += word.size();
    while (pos < source_.size() && IsSpace(CharacterAt(source_, pos).code)) {
      pos += CharacterAt(source_, pos).size;
    }
    return pos;
  };
  const size_t open_end = match(inside, "raw");
  if (open_end == kNpos) return Status();
  const bool strips = source_.substr(open_end, 3) == "-%}";
  if (!strips && source_.substr(open_end, 2) != "%}") return Status();

  const char sign = inside == tag + 3 ? source_[tag + 2] : '\0';
  AddData(source_.substr(data_begin, tag - data_begin), sign, false);
  MoveTo(open_end + (strips ? 3 : 2));
  if (strips) SkipSpace();
  line_starting_ = source_[pos_ - 1] == '\n';

  for (size_t end = source_.find("{%", pos_); end != kNpos;
       end = source_.find("{%", end + 2)) {
    const char after = end + 2 < source_.size() ? source_[end + 2] : '\0';
    const bool has_sign = after == '-' || after == '+';
    const size_t close = match(end + (has_sign ? 3 : 2), "endraw");
    if (close == kNpos) continue;
    const std::string_view rest = source_.substr(close);
    const bool ends = rest.starts_with("%}") || rest.starts_with("-%}") ||
                      rest.starts_with("+%}");
    if (!ends) continue;
    AddData(source_.substr(pos_, end - pos_), has_sign ? after : '\0', false);
    MoveTo(close);
    TakeEnd("%}", true);
    return Status();
  }
  return Fail("missing end of raw directive");
}

Status Lexer::LexComment() {
  const size_t end = source_.find("#}", pos_);
  if (end == kNpos) return Fail("missing end of comment tag");
  const bool has_sign =
      end > pos_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
  MoveTo(has_sign ? end - 1 : end);
  TakeEnd("#}", true);
  return Status();
}

bool Lexer::TakeEnd(std::string_view end, bool is_block) {
  const std::string_view rest = source_.substr(pos_);
  if (rest.starts_with('-') && rest.substr(1).starts_with(end)) {
    MoveTo(pos_ + 1 + end.size());
    SkipSpace();
  } else if (is_block && rest.starts_with('+') &&
             rest.substr(1).starts_with(end)) {
    MoveTo(pos_ + 1 + end.size());
  } else if (rest.starts_with(end)) {
    MoveTo(pos_ + end.size());
    if (is_block && Peek() == '\n') MoveTo(pos_ + 1);
  } else {
    return false;
  }
  line_starting_ = source_[pos_ - 1] == '\n';
  return true;
}

Status Lexer::LexInside(TokenKind end_kind) {
  const bool is_block = end_kind == TokenKind::kBlockEnd;
  const std::string_view end = is_block ? "%}" : "}}";
  while (pos_ < source_.size()) {
    const int line = line_;
    if (brackets_.empty() && TakeEnd(end, is_block)) {
      tokens_.push_back({end_kind, line, std::string(end)});
      return Status();
    }
    RETURN_IF_ERROR(AddToken());
  }
  return Status();  // the parser misses the end and says so
}

Status Lexer::AddToken() {
  const Character c = CharacterAt(source_, pos_);
  if (IsSpace(c.code)) {
    SkipSpace();
    return Status();
  }
  Token token{.kind = TokenKind::kEnd, .line = line_, .text = {}};
  const auto end = LexToken(source_, pos_, &token);
  if (!end.ok()) return Fail(end.status().message());
  if (token.kind == TokenKind::kOperator) {
    RETURN_IF_ERROR(CheckBracket(token.text[0]));
  }
  tokens_.push_back(std::move(token));
  MoveTo(*end);
  return Status();
}

Status Lexer::CheckBracket(char bracket) {
  if (bracket == '{') brackets_ += '}';
  if (bracket == '(') brackets_ += ')';
  if (bracket == '[') brackets_ += ']';
  if (bracket != '}' && bracket != ')' && bracket != ']') return Status();
  if (brackets_.empty()) return Fail(fmt::format("unexpected '{}'", bracket));
  if (brackets_.back() != bracket) {
    return Fail(
        fmt::format("found '{}', expected '{}'", bracket, brackets_.back()));
  }
  brackets_.pop_back();
  return Status();
}

}  // namespace

Result<std::vector<Token>> Tokenize(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    return Corrupt(
        fmt::format("chat template has {} bytes, at most {} are "
                    "accepted",
                    source.size(), kMaxTemplateBytes));
  }
  if (!IsValidUtf8(source)) {
    return Corrupt("chat template is not valid UTF-8");
  }
  const std::string normalized = NormalizeNewlines(source);
  return Lexer(normalized).Run();
}

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kData:
      return "text";
    case TokenKind::kEnd:
      return "the end of the template";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kVariableBegin:
    case TokenKind::kVariableEnd:
    case TokenKind::kBlockBegin:
    case TokenKind::kBlockEnd:
    case TokenKind::kName:
    case TokenKind::kInteger:
    case TokenKind::kFloat:
    case TokenKind::kOperator:
      return fmt::format("'{}'", token.text);
  }
  return "a token";
}

}  // namespace muster::jinja

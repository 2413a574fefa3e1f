#include "tokenizer/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::jinja {

const Token& Parser::Next() const {
  return tokens_[std::min(pos_ + 1, tokens_.size() - 1)];
}

Token Parser::Take() {
  if (pos_ + 1 == tokens_.size()) return tokens_[pos_];  // the end stays
  return std::move(tokens_[pos_++]);
}

bool Parser::AtOp(std::string_view op) const {
  return At(TokenKind::kOperator) && Current().text == op;
}

bool Parser::AtWord(std::string_view word) const {
  return At(TokenKind::kName) && Current().text == word;
}

bool Parser::AtAnyWord(const Words& words) const {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return AtWord(word); });
}

bool Parser::TakeOp(std::string_view op) {
  if (!AtOp(op)) return false;
  ++pos_;
  return true;
}

bool Parser::TakeWord(std::string_view word) {
  if (!AtWord(word)) return false;
  ++pos_;
  return true;
}

Status Parser::ExpectOp(std::string_view op) {
  return TakeOp(op) ? Status() : FailExpected(fmt::format("'{}'", op));
}

Status Parser::ExpectWord(std::string_view word) {
  return TakeWord(word) ? Status() : FailExpected(fmt::format("'{}'", word));
}

Status Parser::Expect(TokenKind kind, std::string_view what) {
  if (!At(kind)) return FailExpected(what);
  Take();
  return Status();
}

Result<std::string> Parser::ExpectName(std::string_view what) {
  if (!At(TokenKind::kName)) return FailExpected(what);
  return Take().text;
}

Status Parser::CheckDepth() const {
  if (depth_ <= kMaxTemplateDepth) return Status();
  return Fail(Current().line, "the template is nested too deeply");
}

Status Parser::FailExpected(std::string_view expected) const {
  return Fail(Current().line, fmt::format("found {}, expected {}",
                                          Describe(Current()), expected));
}

Status Parser::Fail(int line, std::string_view what) const {
  return Corrupt(fmt::format("chat template line {}: {}", line, what));
}

ExprPtr Parser::NewExpr(ExprKind kind) const {
  auto node = std::make_unique<Expr>();
  node->kind = kind;
  node->line = Current().line;
  return node;
}

Result<ExprPtr> Parser::Finish(ExprPtr node) const {
  const auto add = [&](const ExprPtr& child) {
    if (child != nullptr) node->depth = std::max(node->depth, child->depth + 1);
  };
  for (const ExprPtr& item : node->items) add(item);
  for (const ExprPtr& arg : node->args.positional) add(arg);
  for (const auto& [name, arg] : node->args.named) add(arg);
  add(node->args.star);
  add(node->args.star_star);
  if (node->depth > kMaxTemplateDepth) {
    return Fail(node->line, "the expression is nested too deeply");
  }
  return node;
}

Result<ExprPtr> Parser::NewUnary(ExprKind kind, int line,
                                 ExprPtr operand) const {
  ExprPtr node = NewExpr(kind);
  node->line = line;
  node->items.push_back(std::move(operand));
  return Finish(std::move(node));
}

Result<ExprPtr> Parser::NewBinary(ExprKind kind, int line, ExprPtr left,
                                  ExprPtr right) const {
  ExprPtr node = NewExpr(kind);
  node->line = line;
  node->items.push_back(std::move(left));
  node->items.push_back(std::move(right));
  return Finish(std::move(node));
}

Result<Template> Parser::Parse() {
  ASSIGN_OR_RETURN(Body body, ParseBody({}));
  return Template{std::move(body), std::move(names_)};
}

Result<Template> ParseTemplate(std::string_view source) {
  ASSIGN_OR_RETURN(auto tokens, Tokenize(source));
  return Parser(std::move(tokens)).Parse();
}

}  // namespace muster::jinja

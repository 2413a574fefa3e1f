// Operators, loosest binding first. Each function is one rule of Jinja2's
// grammar. Their operands are in parse_primary.cc and parse_postfix.cc.
#include <fmt/format.h>

#include <optional>

#include "tokenizer/jinja/parser.h"

namespace muster::jinja {

Result<ExprPtr> Parser::ParseTuple(const TupleOptions& options) {
  ExprPtr tuple = NewExpr(ExprKind::kTuple);
  bool is_tuple = false;
  while (true) {
    if (!tuple->items.empty()) RETURN_IF_ERROR(ExpectOp(","));
    const bool ends = At(TokenKind::kVariableEnd) || At(TokenKind::kBlockEnd) ||
                      AtOp(")") ||
                      (!options.end_word.empty() && AtWord(options.end_word));
    if (ends) break;
    ASSIGN_OR_RETURN(ExprPtr item,
                     options.with_condition ? ParseExpression() : ParseOr());
    tuple->items.push_back(std::move(item));
    if (!AtOp(",")) break;
    is_tuple = true;
  }
  if (is_tuple) return Finish(std::move(tuple));
  if (tuple->items.size() == 1) return std::move(tuple->items[0]);
  if (!options.in_parentheses) return FailExpected("an expression");
  return Finish(std::move(tuple));
}

Result<ExprPtr> Parser::ParseExpression() {
  const Nesting nesting(this);
  RETURN_IF_ERROR(CheckDepth());
  ASSIGN_OR_RETURN(ExprPtr value, ParseOr());
  while (TakeWord("if")) {
    ExprPtr node = NewExpr(ExprKind::kCondition);
    node->items.resize(3);
    ASSIGN_OR_RETURN(node->items[0], ParseOr());
    node->items[1] = std::move(value);
    if (TakeWord("else")) {
      ASSIGN_OR_RETURN(node->items[2], ParseExpression());
    }
    ASSIGN_OR_RETURN(value, Finish(std::move(node)));
  }
  return value;
}

Result<ExprPtr> Parser::ParseOr() {
  ASSIGN_OR_RETURN(ExprPtr left, ParseAnd());
  while (AtWord("or")) {
    const int line = Take().line;
    ASSIGN_OR_RETURN(ExprPtr right, ParseAnd());
    ASSIGN_OR_RETURN(left, NewBinary(ExprKind::kOr, line, std::move(left),
                                     std::move(right)));
  }
  return left;
}

Result<ExprPtr> Parser::ParseAnd() {
  ASSIGN_OR_RETURN(ExprPtr left, ParseNot());
  while (AtWord("and")) {
    const int line = Take().line;
    ASSIGN_OR_RETURN(ExprPtr right, ParseNot());
    ASSIGN_OR_RETURN(left, NewBinary(ExprKind::kAnd, line, std::move(left),
                                     std::move(right)));
  }
  return left;
}

Result<ExprPtr> Parser::ParseNot() {
  if (!AtWord("not")) return ParseCompare();
  const Nesting nesting(this);
  RETURN_IF_ERROR(CheckDepth());
  const int line = Take().line;
  ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  return NewUnary(ExprKind::kNot, line, std::move(operand));
}

namespace {

std::optional<CompareOp> CompareOpOf(const Token& token) {
  if (token.kind == TokenKind::kName) {
    if (token.text == "in") return CompareOp::kIn;
    return std::nullopt;
  }
  if (token.kind != TokenKind::kOperator) return std::nullopt;
  if (token.text == "==") return CompareOp::kEq;
  if (token.text == "!=") return CompareOp::kNe;
  if (token.text == "<") return CompareOp::kLt;
  if (token.text == "<=") return CompareOp::kLe;
  if (token.text == ">") return CompareOp::kGt;
  if (token.text == ">=") return CompareOp::kGe;
  return std::nullopt;
}

}  // namespace

Result<ExprPtr> Parser::ParseCompare() {
  ASSIGN_OR_RETURN(ExprPtr first, ParseSum());
  ExprPtr node = NewExpr(ExprKind::kCompare);
  node->items.push_back(std::move(first));
  while (true) {
    auto op = CompareOpOf(Current());
    const bool not_in =
        AtWord("not") && Next().kind == TokenKind::kName && Next().text == "in";
    if (not_in) {
      op = CompareOp::kNotIn;
      Take();
    }
    if (!op) break;
    Take();
    ASSIGN_OR_RETURN(ExprPtr operand, ParseSum());
    node->comparisons.push_back(*op);
    node->items.push_back(std::move(operand));
  }
  if (node->comparisons.empty()) return std::move(node->items[0]);
  return Finish(std::move(node));
}

Result<ExprPtr> Parser::ParseSum() {
  ASSIGN_OR_RETURN(ExprPtr left, ParseConcat());
  while (AtOp("+") || AtOp("-")) {
    const Token op = Take();
    ASSIGN_OR_RETURN(ExprPtr right, ParseConcat());
    ASSIGN_OR_RETURN(left, NewBinary(ExprKind::kBinary, op.line,
                                     std::move(left), std::move(right)));
    left->op = op.text == "+" ? BinaryOp::kAdd : BinaryOp::kSub;
  }
  return left;
}

Result<ExprPtr> Parser::ParseConcat() {
  ASSIGN_OR_RETURN(ExprPtr first, ParseProduct());
  if (!AtOp("~")) return first;
  ExprPtr node = NewExpr(ExprKind::kConcat);
  node->items.push_back(std::move(first));
  while (TakeOp("~")) {
    ASSIGN_OR_RETURN(ExprPtr operand, ParseProduct());
    node->items.push_back(std::move(operand));
  }
  return Finish(std::move(node));
}

Result<ExprPtr> Parser::ParseProduct() {
  ASSIGN_OR_RETURN(ExprPtr left, ParsePower());
  while (AtOp("*") || AtOp("/") || AtOp("//") || AtOp("%")) {
    const Token op = Take();
    ASSIGN_OR_RETURN(ExprPtr right, ParsePower());
    ASSIGN_OR_RETURN(left, NewBinary(ExprKind::kBinary, op.line,
                                     std::move(left), std::move(right)));
    left->op = op.text == "*"    ? BinaryOp::kMul
               : op.text == "/"  ? BinaryOp::kDiv
               : op.text == "//" ? BinaryOp::kFloorDiv
                                 : BinaryOp::kMod;
  }
  return left;
}

Result<ExprPtr> Parser::ParsePower() {
  ASSIGN_OR_RETURN(ExprPtr left, ParseUnary(true));
  while (AtOp("**")) {
    const int line = Take().line;
    ASSIGN_OR_RETURN(ExprPtr right, ParseUnary(true));
    ASSIGN_OR_RETURN(left, NewBinary(ExprKind::kBinary, line, std::move(left),
                                     std::move(right)));
    left->op = BinaryOp::kPow;
  }
  return left;
}

Result<ExprPtr> Parser::ParseUnary(bool with_filter) {
  const Nesting nesting(this);
  RETURN_IF_ERROR(CheckDepth());
  ExprPtr node;
  if (AtOp("-") || AtOp("+")) {
    const Token sign = Take();
    ASSIGN_OR_RETURN(ExprPtr operand, ParseUnary(false));
    const ExprKind kind =
        sign.text == "-" ? ExprKind::kNegate : ExprKind::kPlus;
    ASSIGN_OR_RETURN(node, NewUnary(kind, sign.line, std::move(operand)));
  } else {
    ASSIGN_OR_RETURN(node, ParsePrimary());
  }
  ASSIGN_OR_RETURN(node, ParsePostfix(std::move(node)));
  if (!with_filter) return node;
  return ParseFilterExpr(std::move(node));
}

}  // namespace muster::jinja

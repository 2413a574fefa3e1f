// Names, literals and what stands in brackets.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "tokenizer/jinja/parser.h"

namespace muster::jinja {

Result<ExprPtr> Parser::ParsePrimary() {
  switch (Current().kind) {
    case TokenKind::kName:
      return ParseName();
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return ParseNumber();
    case TokenKind::kString: {
      ExprPtr node = NewExpr(ExprKind::kConst);
      std::string text;
      while (At(TokenKind::kString)) text += Take().text;
      node->constant = Value::String(std::move(text));
      return node;
    }
    case TokenKind::kOperator:
      if (TakeOp("(")) {
        ASSIGN_OR_RETURN(ExprPtr inner, ParseTuple({.in_parentheses = true}));
        RETURN_IF_ERROR(ExpectOp(")"));
        return inner;
      }
      if (AtOp("[")) return ParseList();
      if (AtOp("{")) return ParseDict();
      break;
    case TokenKind::kData:
    case TokenKind::kVariableBegin:
    case TokenKind::kVariableEnd:
    case TokenKind::kBlockBegin:
    case TokenKind::kBlockEnd:
    case TokenKind::kEnd:
      break;
  }
  return FailExpected("an expression");
}

Result<ExprPtr> Parser::ParseName() {
  ExprPtr node = NewExpr(ExprKind::kConst);
  const Token token = Take();
  const std::string& name = token.text;
  if (name == "true" || name == "True" || name == "false" || name == "False") {
    node->constant = Value::Bool(name == "true" || name == "True");
    return node;
  }
  if (name == "none" || name == "None") {
    node->constant = Value::None();
    return node;
  }
  for (Statement* macro : macros_) {
    if (name == "varargs") macro->uses_varargs = true;
    if (name == "kwargs") macro->uses_kwargs = true;
    if (name == "caller") macro->uses_caller = true;
  }
  names_.insert(name);
  node->kind = ExprKind::kName;
  node->name = name;
  return node;
}

Result<ExprPtr> Parser::ParseNumber() {
  ExprPtr node = NewExpr(ExprKind::kConst);
  const Token token = Take();
  const char* begin = token.text.data();
  const char* end = begin + token.text.size();
  if (token.kind == TokenKind::kFloat) {
    double value = 0;
    const auto read = std::from_chars(begin, end, value);
    if (read.ec == std::errc::result_out_of_range) {
      const bool tiny = token.text.find("e-") != std::string::npos ||
                        token.text.find("E-") != std::string::npos;
      value = tiny ? 0.0 : HUGE_VAL;
    }
    node->constant = Value::Float(value);
    return node;
  }
  const bool is_hex =
      token.text.size() > 2 && (token.text[1] == 'x' || token.text[1] == 'X');
  int64_t value = 0;
  const auto read = is_hex ? std::from_chars(begin + 2, end, value, 16)
                           : std::from_chars(begin, end, value);
  if (read.ec != std::errc()) {
    return Fail(token.line,
                fmt::format("integer {} does not fit 64 bits", token.text));
  }
  node->constant = Value::Int(value);
  return node;
}

Result<ExprPtr> Parser::ParseList() {
  ExprPtr node = NewExpr(ExprKind::kList);
  RETURN_IF_ERROR(ExpectOp("["));
  while (!AtOp("]")) {
    if (!node->items.empty()) RETURN_IF_ERROR(ExpectOp(","));
    if (AtOp("]")) break;
    ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
    node->items.push_back(std::move(item));
  }
  RETURN_IF_ERROR(ExpectOp("]"));
  return Finish(std::move(node));
}

Result<ExprPtr> Parser::ParseDict() {
  ExprPtr node = NewExpr(ExprKind::kDict);
  RETURN_IF_ERROR(ExpectOp("{"));
  while (!AtOp("}")) {
    if (!node->items.empty()) RETURN_IF_ERROR(ExpectOp(","));
    if (AtOp("}")) break;
    ASSIGN_OR_RETURN(ExprPtr key, ParseExpression());
    RETURN_IF_ERROR(ExpectOp(":"));
    ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    node->items.push_back(std::move(key));
    node->items.push_back(std::move(value));
  }
  RETURN_IF_ERROR(ExpectOp("}"));
  return Finish(std::move(node));
}

}  // namespace muster::jinja

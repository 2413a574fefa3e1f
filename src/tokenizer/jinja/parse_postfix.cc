// What stands behind a value: attributes, subscripts, calls, filters, tests.
#include <fmt/format.h>

#include "tokenizer/jinja/parser.h"

namespace muster::jinja {

Result<ExprPtr> Parser::ParsePostfix(ExprPtr node) {
  while (true) {
    if (AtOp(".")) {
      ASSIGN_OR_RETURN(node, ParseAttribute(std::move(node)));
    } else if (AtOp("[")) {
      ASSIGN_OR_RETURN(node, ParseSubscript(std::move(node)));
    } else if (AtOp("(")) {
      ASSIGN_OR_RETURN(node, ParseCall(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> Parser::ParseFilterExpr(ExprPtr node) {
  while (true) {
    if (AtOp("|")) {
      ASSIGN_OR_RETURN(node, ParseFilters(std::move(node), false));
    } else if (AtWord("is")) {
      ASSIGN_OR_RETURN(node, ParseTest(std::move(node)));
    } else if (AtOp("(")) {
      ASSIGN_OR_RETURN(node, ParseCall(std::move(node)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> Parser::ParseAttribute(ExprPtr object) {
  ExprPtr node = NewExpr(ExprKind::kGetAttr);
  RETURN_IF_ERROR(ExpectOp("."));
  node->items.push_back(std::move(object));
  if (At(TokenKind::kInteger)) {
    node->kind = ExprKind::kGetItem;
    ASSIGN_OR_RETURN(ExprPtr index, ParseNumber());
    node->items.push_back(std::move(index));
  } else {
    ASSIGN_OR_RETURN(node->attribute, ExpectName("a name or a number"));
  }
  return Finish(std::move(node));
}

Result<ExprPtr> Parser::ParseSubscript(ExprPtr object) {
  ExprPtr node = NewExpr(ExprKind::kGetItem);
  ExprPtr tuple = NewExpr(ExprKind::kTuple);
  RETURN_IF_ERROR(ExpectOp("["));
  while (!AtOp("]")) {
    if (!tuple->items.empty()) RETURN_IF_ERROR(ExpectOp(","));
    ASSIGN_OR_RETURN(ExprPtr index, ParseSlice());
    tuple->items.push_back(std::move(index));
  }
  RETURN_IF_ERROR(ExpectOp("]"));
  node->items.push_back(std::move(object));
  if (tuple->items.size() == 1) {
    node->items.push_back(std::move(tuple->items[0]));
  } else {
    ASSIGN_OR_RETURN(tuple, Finish(std::move(tuple)));
    node->items.push_back(std::move(tuple));
  }
  return Finish(std::move(node));
}

Result<ExprPtr> Parser::ParseSlice() {
  ExprPtr slice = NewExpr(ExprKind::kSlice);
  slice->items.resize(3);
  if (!AtOp(":")) {
    ASSIGN_OR_RETURN(slice->items[0], ParseExpression());
    if (!AtOp(":")) return std::move(slice->items[0]);
  }
  for (size_t part = 1; part < 3 && TakeOp(":"); ++part) {
    if (AtOp(":") || AtOp("]") || AtOp(",")) continue;
    ASSIGN_OR_RETURN(slice->items[part], ParseExpression());
  }
  return Finish(std::move(slice));
}

Result<ExprPtr> Parser::ParseCall(ExprPtr callee) {
  ExprPtr node = NewExpr(ExprKind::kCall);
  node->items.push_back(std::move(callee));
  ASSIGN_OR_RETURN(node->args, ParseArgs());
  return Finish(std::move(node));
}

Result<CallArgs> Parser::ParseArgs() {
  RETURN_IF_ERROR(ExpectOp("("));
  CallArgs args;
  bool first = true;
  while (!AtOp(")")) {
    if (!first) {
      RETURN_IF_ERROR(ExpectOp(","));
      if (AtOp(")")) break;
    }
    first = false;
    RETURN_IF_ERROR(ParseArg(&args));
  }
  RETURN_IF_ERROR(ExpectOp(")"));
  return args;
}

Status Parser::ParseArg(CallArgs* args) {
  const int line = Current().line;
  const Status misplaced = Fail(line, "arguments are in the wrong order");
  if (TakeOp("*")) {
    if (args->star != nullptr || args->star_star != nullptr) return misplaced;
    ASSIGN_OR_RETURN(args->star, ParseExpression());
    return Status();
  }
  if (TakeOp("**")) {
    if (args->star_star != nullptr) return misplaced;
    ASSIGN_OR_RETURN(args->star_star, ParseExpression());
    return Status();
  }
  const bool is_named = At(TokenKind::kName) &&
                        Next().kind == TokenKind::kOperator &&
                        Next().text == "=";
  if (is_named) {
    if (args->star_star != nullptr) return misplaced;
    std::string name = Take().text;
    Take();
    ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    args->named.emplace_back(std::move(name), std::move(value));
    return Status();
  }
  const bool is_late = args->star != nullptr || args->star_star != nullptr ||
                       !args->named.empty();
  if (is_late) return misplaced;
  ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
  args->positional.push_back(std::move(value));
  return Status();
}

Result<std::string> Parser::ParseDottedName() {
  ASSIGN_OR_RETURN(std::string name,
                   ExpectName("the name of a filter or test"));
  while (TakeOp(".")) {
    ASSIGN_OR_RETURN(const std::string part, ExpectName("a name"));
    name += '.';
    name += part;
  }
  return name;
}

Result<ExprPtr> Parser::ParseFilters(ExprPtr node, bool inline_start) {
  while (inline_start || AtOp("|")) {
    if (!inline_start) Take();
    inline_start = false;
    ExprPtr filter = NewExpr(ExprKind::kFilter);
    ASSIGN_OR_RETURN(filter->name, ParseDottedName());
    filter->items.push_back(std::move(node));
    if (AtOp("(")) {
      ASSIGN_OR_RETURN(filter->args, ParseArgs());
    }
    ASSIGN_OR_RETURN(node, Finish(std::move(filter)));
  }
  return node;
}

Result<ExprPtr> Parser::ParseTest(ExprPtr node) {
  const int line = Current().line;
  RETURN_IF_ERROR(ExpectWord("is"));
  const bool negated = TakeWord("not");
  ExprPtr test = NewExpr(ExprKind::kTest);
  ASSIGN_OR_RETURN(test->name, ParseDottedName());
  test->items.push_back(std::move(node));
  const bool has_bare_arg =
      (At(TokenKind::kName) && !AtAnyWord({"else", "or", "and"})) ||
      At(TokenKind::kString) || At(TokenKind::kInteger) ||
      At(TokenKind::kFloat) || AtOp("[") || AtOp("{");
  if (AtOp("(")) {
    ASSIGN_OR_RETURN(test->args, ParseArgs());
  } else if (has_bare_arg) {
    if (AtWord("is")) return Fail(line, "tests cannot be chained with 'is'");
    ASSIGN_OR_RETURN(ExprPtr arg, ParsePrimary());
    ASSIGN_OR_RETURN(arg, ParsePostfix(std::move(arg)));
    test->args.positional.push_back(std::move(arg));
  }
  ASSIGN_OR_RETURN(test, Finish(std::move(test)));
  if (!negated) return test;
  return NewUnary(ExprKind::kNot, line, std::move(test));
}

}  // namespace muster::jinja

#include <fmt/format.h>

#include "tokenizer/jinja/parser.h"

namespace muster::jinja {

Result<Body> Parser::ParseBody(const Words& ends) {
  Body body;
  while (!At(TokenKind::kEnd)) {
    if (At(TokenKind::kData)) {
      Token data = Take();
      body.push_back({.kind = StatementKind::kText,
                      .line = data.line,
                      .text = Value::String(std::move(data.text))});
    } else if (At(TokenKind::kVariableBegin)) {
      Take();
      ASSIGN_OR_RETURN(Statement print, ParsePrint());
      body.push_back(std::move(print));
    } else {
      RETURN_IF_ERROR(Expect(TokenKind::kBlockBegin, "a tag"));
      if (AtAnyWord(ends)) return body;
      ASSIGN_OR_RETURN(Statement statement, ParseStatement());
      body.push_back(std::move(statement));
      RETURN_IF_ERROR(Expect(TokenKind::kBlockEnd, "'%}'"));
    }
  }
  if (!ends.empty()) return FailExpected(fmt::format("'{}'", ends.back()));
  return body;
}

// From behind a tag's expressions up to the name of the tag that ends it.
Result<Body> Parser::ParseBlockBody(const Words& ends) {
  TakeOp(":");
  RETURN_IF_ERROR(Expect(TokenKind::kBlockEnd, "'%}'"));
  return ParseBody(ends);
}

Result<Statement> Parser::ParsePrint() {
  Statement print{.kind = StatementKind::kPrint, .line = Current().line};
  ASSIGN_OR_RETURN(print.expr, ParseTuple({}));
  RETURN_IF_ERROR(Expect(TokenKind::kVariableEnd, "'}}'"));
  return print;
}

Result<Statement> Parser::ParseStatement() {
  const Nesting nesting(this);
  RETURN_IF_ERROR(CheckDepth());
  Statement out{.line = Current().line};
  const Status unknown = FailExpected("a tag that this build knows");
  ASSIGN_OR_RETURN(const std::string tag, ExpectName("the name of a tag"));
  Status status = unknown;
  if (tag == "if") status = ParseIf(&out);
  if (tag == "for") status = ParseFor(&out);
  if (tag == "set") status = ParseSet(&out);
  if (tag == "macro") status = ParseMacro(&out);
  if (tag == "call") status = ParseCallBlock(&out);
  if (tag == "filter") status = ParseFilterBlock(&out);
  if (tag == "with") status = ParseWith(&out);
  if (tag == "generation") status = ParseGeneration(&out);
  if (tag == "break" || tag == "continue") {
    out.kind =
        tag == "break" ? StatementKind::kBreak : StatementKind::kContinue;
    status = num_loops_ > 0
                 ? Status()
                 : Fail(out.line, fmt::format("'{}' outside of a loop", tag));
  }
  if (!status.ok()) return status;
  return out;
}

Status Parser::ParseIf(Statement* out) {
  out->kind = StatementKind::kIf;
  std::string tag = "if";
  while (tag != "endif") {
    Branch branch;
    if (tag != "else") {
      ASSIGN_OR_RETURN(branch.condition, ParseTuple({.with_condition = false}));
    }
    const Words ends =
        tag == "else" ? Words{"endif"} : Words{"elif", "else", "endif"};
    ASSIGN_OR_RETURN(branch.body, ParseBlockBody(ends));
    out->branches.push_back(std::move(branch));
    tag = Take().text;
  }
  return Status();
}

Status Parser::ParseFor(Statement* out) {
  out->kind = StatementKind::kFor;
  ASSIGN_OR_RETURN(out->target, ParseTarget(false));
  RETURN_IF_ERROR(ExpectWord("in"));
  ASSIGN_OR_RETURN(out->expr, ParseTuple({.with_condition = false,
                                          .end_word = "recursive"}));
  if (TakeWord("if")) {
    ASSIGN_OR_RETURN(out->condition, ParseExpression());
  }
  out->recursive = TakeWord("recursive");
  ++num_loops_;
  ASSIGN_OR_RETURN(out->body, ParseBlockBody({"else", "endfor"}));
  --num_loops_;
  if (Take().text == "endfor") return Status();
  ASSIGN_OR_RETURN(out->else_body, ParseBlockBody({"endfor"}));
  Take();
  return Status();
}

Status Parser::ParseSet(Statement* out) {
  out->kind = StatementKind::kSet;
  ASSIGN_OR_RETURN(out->target, ParseTarget(true));
  if (TakeOp("=")) {
    ASSIGN_OR_RETURN(out->expr, ParseTuple({}));
    return Status();
  }
  out->kind = StatementKind::kSetBlock;
  ASSIGN_OR_RETURN(out->expr, ParseFilters(nullptr, false));
  ASSIGN_OR_RETURN(out->body, ParseBlockBody({"endset"}));
  Take();
  return Status();
}

// A name, ns.attribute, or several of them with commas between.
Result<ExprPtr> Parser::ParseTarget(bool allow_namespace) {
  const Nesting nesting(this);
  RETURN_IF_ERROR(CheckDepth());
  ExprPtr tuple = NewExpr(ExprKind::kTuple);
  bool is_tuple = false;
  while (true) {
    ExprPtr item;
    if (TakeOp("(")) {
      ASSIGN_OR_RETURN(item, ParseTarget(allow_namespace));
      RETURN_IF_ERROR(ExpectOp(")"));
    } else {
      ASSIGN_OR_RETURN(item, ParseName());
      if (item->kind != ExprKind::kName) {
        return Fail(item->line, "a constant cannot be assigned to");
      }
      if (allow_namespace && TakeOp(".")) {
        item->kind = ExprKind::kNamespaceRef;
        ASSIGN_OR_RETURN(item->attribute, ExpectName("a name"));
      }
    }
    tuple->items.push_back(std::move(item));
    if (!TakeOp(",")) break;
    is_tuple = true;
    if (!At(TokenKind::kName) && !AtOp("(")) break;
    if (AtWord("in")) break;
  }
  if (!is_tuple) return std::move(tuple->items[0]);
  return Finish(std::move(tuple));
}

Status Parser::ParseParams(Statement* out) {
  RETURN_IF_ERROR(ExpectOp("("));
  while (!AtOp(")")) {
    if (!out->params.empty()) RETURN_IF_ERROR(ExpectOp(","));
    Param param;
    ASSIGN_OR_RETURN(param.name, ExpectName("the name of a parameter"));
    if (TakeOp("=")) {
      ASSIGN_OR_RETURN(param.value, ParseExpression());
    } else if (!out->params.empty() && out->params.back().value != nullptr) {
      return Fail(out->line, "a parameter without default follows one with");
    }
    out->params.push_back(std::move(param));
  }
  return ExpectOp(")");
}

Status Parser::ParseMacroBody(Statement* out, std::string_view end) {
  const int num_loops = std::exchange(num_loops_, 0);
  macros_.push_back(out);
  auto body = ParseBlockBody({end});
  macros_.pop_back();
  num_loops_ = num_loops;
  if (!body.ok()) return body.status();
  out->body = std::move(body).value();
  Take();
  return Status();
}

Status Parser::ParseMacro(Statement* out) {
  out->kind = StatementKind::kMacro;
  ASSIGN_OR_RETURN(out->name, ExpectName("the name of a macro"));
  RETURN_IF_ERROR(ParseParams(out));
  return ParseMacroBody(out, "endmacro");
}

Status Parser::ParseCallBlock(Statement* out) {
  out->kind = StatementKind::kCall;
  if (AtOp("(")) RETURN_IF_ERROR(ParseParams(out));
  ASSIGN_OR_RETURN(out->expr, ParseExpression());
  if (out->expr->kind != ExprKind::kCall) return FailExpected("a call");
  return ParseMacroBody(out, "endcall");
}

Status Parser::ParseFilterBlock(Statement* out) {
  out->kind = StatementKind::kFilterBlock;
  ASSIGN_OR_RETURN(out->expr, ParseFilters(nullptr, true));
  ASSIGN_OR_RETURN(out->body, ParseBlockBody({"endfilter"}));
  Take();
  return Status();
}

Status Parser::ParseWith(Statement* out) {
  out->kind = StatementKind::kWith;
  while (!At(TokenKind::kBlockEnd)) {
    if (!out->params.empty()) RETURN_IF_ERROR(ExpectOp(","));
    Param param;
    ASSIGN_OR_RETURN(param.name, ExpectName("a name"));
    RETURN_IF_ERROR(ExpectOp("="));
    ASSIGN_OR_RETURN(param.value, ParseExpression());
    out->params.push_back(std::move(param));
  }
  ASSIGN_OR_RETURN(out->body, ParseBlockBody({"endwith"}));
  Take();
  return Status();
}

Status Parser::ParseGeneration(Statement* out) {
  out->kind = StatementKind::kGeneration;
  return ParseMacroBody(out, "endgeneration");
}

}  // namespace muster::jinja

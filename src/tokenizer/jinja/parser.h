// Tokens to a Template. Expressions are read in parse_expressions.cc,
// statements in parse_statements.cc; the grammar is Jinja2's.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/lexer.h"

namespace muster::jinja {

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  // Once per object.
  Result<Template> Parse();

 private:
  // Counts a level of nesting while it lives.
  class Nesting {
   public:
    explicit Nesting(Parser* parser) : depth_(parser->depth_) { ++depth_; }
    ~Nesting() { --depth_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;

   private:
    int& depth_;
  };

  using Words = std::vector<std::string_view>;

  // Statements. The tag's name has been read.
  Result<Body> ParseBody(const Words& ends);
  Result<Body> ParseBlockBody(const Words& ends);
  Result<Statement> ParseStatement();
  Result<Statement> ParsePrint();
  Status ParseIf(Statement* out);
  Status ParseFor(Statement* out);
  Status ParseSet(Statement* out);
  Status ParseMacro(Statement* out);
  Status ParseCallBlock(Statement* out);
  Status ParseFilterBlock(Statement* out);
  Status ParseWith(Statement* out);
  Status ParseGeneration(Statement* out);
  Status ParseParams(Statement* out);
  // Reads the body of a macro or of what Jinja2 makes a macro of.
  Status ParseMacroBody(Statement* out, std::string_view end);
  Result<ExprPtr> ParseTarget(bool allow_namespace);

  // Expressions, loosest binding first.
  struct TupleOptions {
    bool with_condition = true;  // accepts `a if b else c`
    bool in_parentheses = false;
    std::string_view end_word = {};  // a name that ends the tuple as well
  };
  Result<ExprPtr> ParseTuple(const TupleOptions& options);
  Result<ExprPtr> ParseExpression();
  Result<ExprPtr> ParseOr();
  Result<ExprPtr> ParseAnd();
  Result<ExprPtr> ParseNot();
  Result<ExprPtr> ParseCompare();
  Result<ExprPtr> ParseSum();
  Result<ExprPtr> ParseConcat();
  Result<ExprPtr> ParseProduct();
  Result<ExprPtr> ParsePower();
  Result<ExprPtr> ParseUnary(bool with_filter);
  Result<ExprPtr> ParsePrimary();
  Result<ExprPtr> ParseName();
  Result<ExprPtr> ParseNumber();
  Result<ExprPtr> ParseList();
  Result<ExprPtr> ParseDict();
  Result<ExprPtr> ParsePostfix(ExprPtr node);
  Result<ExprPtr> ParseFilterExpr(ExprPtr node);
  Result<ExprPtr> ParseAttribute(ExprPtr object);
  Result<ExprPtr> ParseSubscript(ExprPtr object);
  Result<ExprPtr> ParseSlice();
  Result<ExprPtr> ParseCall(ExprPtr callee);
  // `node` is null in a filter block. Reads `|a|b...`; the first bar is
  // missing when `inline_start`.
  Result<ExprPtr> ParseFilters(ExprPtr node, bool inline_start);
  Result<ExprPtr> ParseTest(ExprPtr node);
  Result<CallArgs> ParseArgs();
  Status ParseArg(CallArgs* args);
  Result<std::string> ParseDottedName();

  // Sets `depth` from the children; fails when the tree becomes too deep.
  Result<ExprPtr> Finish(ExprPtr node) const;
  ExprPtr NewExpr(ExprKind kind) const;
  Result<ExprPtr> NewUnary(ExprKind kind, int line, ExprPtr operand) const;
  Result<ExprPtr> NewBinary(ExprKind kind, int line, ExprPtr left,
                            ExprPtr right) const;

  const Token& Current() const { return tokens_[pos_]; }
  const Token& Next() const;
  Token Take();
  bool At(TokenKind kind) const { return Current().kind == kind; }
  bool AtOp(std::string_view op) const;
  bool AtWord(std::string_view word) const;
  bool AtAnyWord(const Words& words) const;
  bool TakeOp(std::string_view op);
  bool TakeWord(std::string_view word);
  Status ExpectOp(std::string_view op);
  Status ExpectWord(std::string_view word);
  Status Expect(TokenKind kind, std::string_view what);
  Result<std::string> ExpectName(std::string_view what);
  Status CheckDepth() const;
  Status FailExpected(std::string_view expected) const;
  Status Fail(int line, std::string_view what) const;

  std::vector<Token> tokens_;
  size_t pos_ = 0;
  int depth_ = 0;
  int num_loops_ = 0;               // around here, in the same macro
  std::vector<Statement*> macros_;  // around here
  std::set<std::string, std::less<>> names_;
};

// Source text to a Template, or kCorrupt with line, found and expected.
Result<Template> ParseTemplate(std::string_view source);

}  // namespace muster::jinja

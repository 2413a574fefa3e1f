// A parsed template. Nodes are plain data; no tree is deeper than
// kMaxTemplateDepth, so that walking and destroying it may recurse.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/jinja/value.h"

namespace muster::jinja {

inline constexpr int kMaxTemplateDepth = 200;
inline constexpr size_t kMaxTemplateBytes = size_t{512} << 10;

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

// In brackets: what `items` holds.
enum class ExprKind {
  kConst,         // `constant`
  kName,          // `name`
  kNamespaceRef,  // `name`.`attribute`, only as the target of `set`
  kList,          // items
  kTuple,         // items; also as a target
  kDict,          // key, value, key, value, ...
  kGetAttr,       // [object] and `attribute`
  kGetItem,       // object, index
  kSlice,         // start, stop, step, each may be null; only as an index
  kCall,          // [callee] and `args`
  kFilter,        // [value, null in a filter block] and `name`, `args`
  kTest,          // [value] and `name`, `args`
  kNot,           // operand
  kNegate,        // operand
  kPlus,          // operand
  kBinary,        // left, right
  kConcat,        // operands of `~`
  kCompare,       // operands; `comparisons` has one less
  kAnd,           // left, right
  kOr,            // left, right
  kCondition,     // condition, value, other value or null
};

enum class BinaryOp { kAdd, kSub, kMul, kDiv, kFloorDiv, kMod, kPow };
enum class CompareOp { kEq, kNe, kLt, kLe, kGt, kGe, kIn, kNotIn };

struct CallArgs {
  std::vector<ExprPtr> positional;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star;       // *args
  ExprPtr star_star;  // **kwargs
};

struct Expr {
  ExprKind kind = ExprKind::kConst;
  int line = 0;
  int depth = 1;
  std::string name;
  std::string attribute;
  Value constant;
  BinaryOp op = BinaryOp::kAdd;
  std::vector<CompareOp> comparisons;
  std::vector<ExprPtr> items;
  CallArgs args;
};

struct Statement;
using Body = std::vector<Statement>;

enum class StatementKind {
  kText,         // `text`
  kPrint,        // `expr`
  kIf,           // `branches`
  kFor,          // `target` in `expr` [if `condition`]: body, else_body
  kSet,          // `target` = `expr`
  kSetBlock,     // `target` = body, through `expr` (a filter) if there
  kMacro,        // `name`(`params`): body
  kCall,         // `expr` (a call) with body as caller(`params`)
  kFilterBlock,  // body through `expr`
  kWith,         // `params` (names and values): body
  kGeneration,   // body, in a scope of its own
  kBreak,
  kContinue,
};

struct Branch {
  ExprPtr condition;  // null: else
  Body body;
};

struct Param {
  std::string name;
  ExprPtr value;  // default or initial value; null: none
};

struct Statement {
  StatementKind kind = StatementKind::kText;
  int line = 0;
  Value text = {};
  std::string name = {};
  ExprPtr expr = {};
  ExprPtr target = {};
  ExprPtr condition = {};
  bool recursive = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
  bool uses_caller = false;
  std::vector<Param> params = {};
  std::vector<Branch> branches = {};
  Body body = {};
  Body else_body = {};
};

struct Template {
  Body body;
  std::set<std::string, std::less<>> names;  // of all variables mentioned
};

}  // namespace muster::jinja

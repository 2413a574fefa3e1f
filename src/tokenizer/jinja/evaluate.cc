#include <fmt/format.h>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/printing.h"

namespace muster::jinja {

Result<Value> Interpreter::Evaluate(const Expr& expr) {
  const Nesting nesting(&depth_);
  RETURN_IF_ERROR(Enter(expr.line));
  switch (expr.kind) {
    case ExprKind::kConst:
      return expr.constant;
    case ExprKind::kName:
      return Lookup(expr.name);
    case ExprKind::kList:
      return EvaluateItems(expr, Kind::kList);
    case ExprKind::kTuple:
      return EvaluateItems(expr, Kind::kTuple);
    case ExprKind::kDict:
      return EvaluateDict(expr);
    case ExprKind::kGetAttr:
    case ExprKind::kNot:
    case ExprKind::kNegate:
    case ExprKind::kPlus:
      return EvaluateUnary(expr);
    case ExprKind::kGetItem:
      return EvaluateGetItem(expr);
    case ExprKind::kCall:
      return EvaluateCall(expr, nullptr);
    case ExprKind::kFilter:
      return EvaluateFilter(expr, nullptr);
    case ExprKind::kTest:
      return EvaluateTest(expr);
    case ExprKind::kBinary:
      return EvaluateBinary(expr);
    case ExprKind::kConcat:
      return EvaluateConcat(expr);
    case ExprKind::kCompare:
      return EvaluateCompare(expr);
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return EvaluateLogic(expr);
    case ExprKind::kCondition:
      return EvaluateCondition(expr);
    case ExprKind::kNamespaceRef:
    case ExprKind::kSlice:
      break;
  }
  return InvalidArgument("a slice stands outside of a simple subscript");
}

Result<Value> Interpreter::EvaluateOr(const ExprPtr& expr,
                                      const Value& otherwise) {
  return expr == nullptr ? otherwise : Evaluate(*expr);
}

Result<Value> Interpreter::EvaluateItems(const Expr& expr, Kind kind) {
  RETURN_IF_ERROR(limits_.AllocateItems(expr.items.size()));
  std::vector<Value> items;
  items.reserve(expr.items.size());
  for (const ExprPtr& item : expr.items) {
    ASSIGN_OR_RETURN(Value value, Evaluate(*item));
    items.push_back(std::move(value));
  }
  return MakeList(kind, std::move(items));
}

Result<Value> Interpreter::EvaluateDict(const Expr& expr) {
  RETURN_IF_ERROR(limits_.AllocateItems(2 * expr.items.size()));
  Dict dict;
  for (size_t i = 0; i + 1 < expr.items.size(); i += 2) {
    ASSIGN_OR_RETURN(const Value key, Evaluate(*expr.items[i]));
    ASSIGN_OR_RETURN(Value value, Evaluate(*expr.items[i + 1]));
    RETURN_IF_ERROR(dict.Set(key, std::move(value)));
  }
  return MakeDict(std::move(dict));
}

Result<Value> Interpreter::EvaluateUnary(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value value, Evaluate(*expr.items[0]));
  if (expr.kind == ExprKind::kNot) return Value::Bool(!Truthy(value));
  if (expr.kind == ExprKind::kNegate) return Negate(value);
  if (expr.kind == ExprKind::kGetAttr) {
    return GetAttribute(value, expr.attribute);
  }
  RETURN_IF_ERROR(CheckDefined(value));
  if (value.IsIntegral()) return Value::Int(value.integer());
  if (value.IsNumber()) return value;
  return InvalidArgument(
      fmt::format("'+' does not work on {}", TypeName(value)));
}

Result<Value> Interpreter::EvaluateGetItem(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value object, Evaluate(*expr.items[0]));
  const Expr& index = *expr.items[1];
  if (index.kind != ExprKind::kSlice) {
    ASSIGN_OR_RETURN(const Value key, Evaluate(index));
    return GetItem(object, key);
  }
  ASSIGN_OR_RETURN(const Value start,
                   EvaluateOr(index.items[0], Value::None()));
  ASSIGN_OR_RETURN(const Value stop, EvaluateOr(index.items[1], Value::None()));
  ASSIGN_OR_RETURN(const Value step, EvaluateOr(index.items[2], Value::None()));
  return Slice(limits_, object, start, stop, step);
}

Result<Value> Interpreter::EvaluateBinary(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value left, Evaluate(*expr.items[0]));
  ASSIGN_OR_RETURN(const Value right, Evaluate(*expr.items[1]));
  return Apply(limits_, expr.op, left, right);
}

Result<Value> Interpreter::EvaluateConcat(const Expr& expr) {
  Text text;
  for (const ExprPtr& item : expr.items) {
    ASSIGN_OR_RETURN(const Value value, Evaluate(*item));
    RETURN_IF_ERROR(Print(limits_, value, &text));
  }
  RETURN_IF_ERROR(limits_.CheckText(text.size()));
  return Value::String(std::move(text));
}

Result<Value> Interpreter::EvaluateCompare(const Expr& expr) {
  ASSIGN_OR_RETURN(Value left, Evaluate(*expr.items[0]));
  for (size_t i = 0; i < expr.comparisons.size(); ++i) {
    ASSIGN_OR_RETURN(Value right, Evaluate(*expr.items[i + 1]));
    ASSIGN_OR_RETURN(const bool holds,
                     Compare(limits_, expr.comparisons[i], left, right));
    if (!holds) return Value::Bool(false);
    left = std::move(right);
  }
  return Value::Bool(true);
}

Result<Value> Interpreter::EvaluateLogic(const Expr& expr) {
  ASSIGN_OR_RETURN(Value left, Evaluate(*expr.items[0]));
  const bool decided = Truthy(left) == (expr.kind == ExprKind::kOr);
  if (decided) return left;
  return Evaluate(*expr.items[1]);
}

Result<Value> Interpreter::EvaluateCondition(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value condition, Evaluate(*expr.items[0]));
  if (Truthy(condition)) return Evaluate(*expr.items[1]);
  return EvaluateOr(expr.items[2],
                    Value::Undefined("the inline if has no else part"));
}

Result<Value> Interpreter::EvaluateFilter(const Expr& expr,
                                          const Value* piped) {
  Value value;
  if (piped == nullptr) {
    ASSIGN_OR_RETURN(value, Evaluate(*expr.items[0]));
  } else if (expr.items[0] == nullptr) {
    value = *piped;
  } else {
    ASSIGN_OR_RETURN(value, EvaluateFilter(*expr.items[0], piped));
  }
  ASSIGN_OR_RETURN(const Args args, EvaluateArgs(expr.args));
  return CallFilter(expr.name, value, args);
}

Result<Value> Interpreter::EvaluateTest(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value value, Evaluate(*expr.items[0]));
  ASSIGN_OR_RETURN(const Args args, EvaluateArgs(expr.args));
  ASSIGN_OR_RETURN(const bool holds, CallTest(expr.name, value, args));
  return Value::Bool(holds);
}

}  // namespace muster::jinja

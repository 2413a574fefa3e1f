// What may stand behind `is`.
#include <fmt/format.h>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/printing.h"
#include "tokenizer/jinja/utf8.h"

namespace muster::jinja {
namespace {

Result<bool> NoArgs(const Args& args, bool holds) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  return holds;
}

template <bool (*kHolds)(const Value&)>
Result<bool> Simple(Interpreter&, const Value& value, const Args& args) {
  return NoArgs(args, kHolds(value));
}

bool IsDefined(const Value& v) { return !v.IsUndefined(); }
bool IsUndefined(const Value& v) { return v.IsUndefined(); }
bool IsNone(const Value& v) { return v.IsNone(); }
bool IsBoolean(const Value& v) { return v.Is(Kind::kBool); }
bool IsTrue(const Value& v) { return v.Is(Kind::kBool) && v.boolean(); }
bool IsFalse(const Value& v) { return v.Is(Kind::kBool) && !v.boolean(); }
bool IsInteger(const Value& v) { return v.Is(Kind::kInt); }
bool IsFloat(const Value& v) { return v.Is(Kind::kFloat); }
bool IsNumber(const Value& v) { return v.IsNumber(); }
bool IsString(const Value& v) { return v.IsString(); }
bool IsMapping(const Value& v) { return v.IsDict(); }
bool IsEscaped(const Value& v) { return v.safe(); }
bool IsCallable(const Value& v) {
  return v.Is(Kind::kMacro) || v.Is(Kind::kFunction) || v.Is(Kind::kMethod) ||
         v.Is(Kind::kLoop) || v.IsUndefined();
}
bool IsSequence(const Value& v) {
  return v.IsString() || v.IsDict() || v.Is(Kind::kList) ||
         v.Is(Kind::kTuple) || v.Is(Kind::kRange) || v.IsUndefined();
}
bool IsIterable(const Value& v) {
  return IsSequence(v) || v.Is(Kind::kView) || v.Is(Kind::kGenerator) ||
         v.Is(Kind::kLoop);
}

Result<bool> Remainder(Interpreter& in, const Value& value, const Value& by,
                       int64_t expected) {
  ASSIGN_OR_RETURN(const Value rest,
                   Apply(in.limits(), BinaryOp::kMod, value, by));
  return Equals(in.limits(), rest, Value::Int(expected));
}

Result<bool> TestOdd(Interpreter& in, const Value& value, const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  return Remainder(in, value, Value::Int(2), 1);
}

Result<bool> TestEven(Interpreter& in, const Value& value, const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  return Remainder(in, value, Value::Int(2), 0);
}

Result<bool> TestDivisibleBy(Interpreter& in, const Value& value,
                             const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"num"}, 1));
  return Remainder(in, value, *bound[0], 0);
}

template <CompareOp kOp>
Result<bool> Comparison(Interpreter& in, const Value& value, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"other"}, 1));
  return Compare(in.limits(), kOp, value, *bound[0]);
}

// Letters of the one case and none of the other.
Result<bool> HasCase(Interpreter& in, const Value& value, const Args& args,
                     bool (*wanted)(char32_t), bool (*unwanted)(char32_t)) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  ASSIGN_OR_RETURN(const Text text, ToText(in.limits(), value));
  RETURN_IF_ERROR(in.limits().Scan(text.size()));
  bool found = false;
  for (size_t pos = 0; pos < text.size();) {
    const Character c = CharacterAt(text.view(), pos);
    if (unwanted(c.code)) return false;
    found = found || wanted(c.code);
    pos += c.size;
  }
  return found;
}

Result<bool> TestLower(Interpreter& in, const Value& v, const Args& args) {
  return HasCase(in, v, args, IsLower, IsUpper);
}
Result<bool> TestUpper(Interpreter& in, const Value& v, const Args& args) {
  return HasCase(in, v, args, IsUpper, IsLower);
}

Result<bool> TestSameAs(Interpreter& in, const Value& value, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"other"}, 1));
  const Value& other = *bound[0];
  if (value.kind() != other.kind()) return false;
  if (value.IsListLike()) return &value.list() == &other.list();
  if (value.IsDict()) return &value.dict() == &other.dict();
  return Equals(in.limits(), value, other);
}

Result<bool> TestFilter(Interpreter&, const Value& value, const Args& args) {
  ASSIGN_OR_RETURN(const Text name, TextArg(&value));
  return NoArgs(args, FindFilter(name.view()) != nullptr);
}

Result<bool> TestTest(Interpreter&, const Value& value, const Args& args) {
  ASSIGN_OR_RETURN(const Text name, TextArg(&value));
  return NoArgs(args, FindTest(name.view()) != nullptr);
}

constexpr Test kTests[] = {
    {"!=", Comparison<CompareOp::kNe>},
    {"<", Comparison<CompareOp::kLt>},
    {"<=", Comparison<CompareOp::kLe>},
    {"==", Comparison<CompareOp::kEq>},
    {">", Comparison<CompareOp::kGt>},
    {">=", Comparison<CompareOp::kGe>},
    {"boolean", Simple<IsBoolean>},
    {"callable", Simple<IsCallable>},
    {"defined", Simple<IsDefined>},
    {"divisibleby", TestDivisibleBy},
    {"eq", Comparison<CompareOp::kEq>},
    {"equalto", Comparison<CompareOp::kEq>},
    {"escaped", Simple<IsEscaped>},
    {"even", TestEven},
    {"false", Simple<IsFalse>},
    {"filter", TestFilter},
    {"float", Simple<IsFloat>},
    {"ge", Comparison<CompareOp::kGe>},
    {"greaterthan", Comparison<CompareOp::kGt>},
    {"gt", Comparison<CompareOp::kGt>},
    {"in", Comparison<CompareOp::kIn>},
    {"integer", Simple<IsInteger>},
    {"iterable", Simple<IsIterable>},
    {"le", Comparison<CompareOp::kLe>},
    {"lessthan", Comparison<CompareOp::kLt>},
    {"lower", TestLower},
    {"lt", Comparison<CompareOp::kLt>},
    {"mapping", Simple<IsMapping>},
    {"ne", Comparison<CompareOp::kNe>},
    {"none", Simple<IsNone>},
    {"number", Simple<IsNumber>},
    {"odd", TestOdd},
    {"sameas", TestSameAs},
    {"sequence", Simple<IsSequence>},
    {"string", Simple<IsString>},
    {"test", TestTest},
    {"true", Simple<IsTrue>},
    {"undefined", Simple<IsUndefined>},
    {"upper", TestUpper},
};

}  // namespace

std::span<const Test> Tests() { return kTests; }

}  // namespace muster::jinja

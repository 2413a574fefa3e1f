// + - * / // % ** on numbers, strings and lists.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tokenizer/jinja/escaping.h"
#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/operators.h"

namespace muster::jinja {
namespace {

constexpr const char* OpName(BinaryOp op) {
  switch (op) {
    case BinaryOp::kAdd:
      return "+";
    case BinaryOp::kSub:
      return "-";
    case BinaryOp::kMul:
      return "*";
    case BinaryOp::kDiv:
      return "/";
    case BinaryOp::kFloorDiv:
      return "//";
    case BinaryOp::kMod:
      return "%";
    case BinaryOp::kPow:
      return "**";
  }
  return "?";
}

Status Overflow() {
  return InvalidArgument("the result does not fit a 64-bit integer");
}

Status DivisionByZero() { return InvalidArgument("division by zero"); }

Result<Value> Power(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return DivisionByZero();
    return Value::Float(
        std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      return Overflow();
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      return Overflow();
    }
  }
  return Value::Int(result);
}

// Rounds down, as Python does. REQUIRES: b != 0.
Result<Value> FloorDivide(int64_t a, int64_t b) {
  if (b == -1) {
    int64_t negated;
    if (__builtin_sub_overflow(int64_t{0}, a, &negated)) return Overflow();
    return Value::Int(negated);
  }
  const int64_t quotient = a / b;
  const bool rounded_up = a % b != 0 && (a < 0) != (b < 0);
  return Value::Int(rounded_up ? quotient - 1 : quotient);
}

// Has the sign of b. REQUIRES: b != 0.
Value Modulo(int64_t a, int64_t b) {
  if (b == -1) return Value::Int(0);
  const int64_t rest = a % b;
  return Value::Int(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

Result<Value> ApplyIntegers(BinaryOp op, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (op) {
    case BinaryOp::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return Overflow();
      return Value::Int(result);
    case BinaryOp::kSub:
      if (__builtin_sub_overflow(a, b, &result)) return Overflow();
      return Value::Int(result);
    case BinaryOp::kMul:
      if (__builtin_mul_overflow(a, b, &result)) return Overflow();
      return Value::Int(result);
    case BinaryOp::kDiv:
      if (b == 0) return DivisionByZero();
      return Value::Float(static_cast<double>(a) / static_cast<double>(b));
    case BinaryOp::kFloorDiv:
      if (b == 0) return DivisionByZero();
      return FloorDivide(a, b);
    case BinaryOp::kMod:
      if (b == 0) return DivisionByZero();
      return Modulo(a, b);
    case BinaryOp::kPow:
      return Power(a, b);
  }
  return Overflow();
}

double FloatModulo(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

Result<Value> ApplyFloats(BinaryOp op, double a, double b) {
  switch (op) {
    case BinaryOp::kAdd:
      return Value::Float(a + b);
    case BinaryOp::kSub:
      return Value::Float(a - b);
    case BinaryOp::kMul:
      return Value::Float(a * b);
    case BinaryOp::kDiv:
      if (b == 0) return DivisionByZero();
      return Value::Float(a / b);
    case BinaryOp::kFloorDiv:
      if (b == 0) return DivisionByZero();
      return Value::Float(std::floor((a - FloatModulo(a, b)) / b + 0.5));
    case BinaryOp::kMod:
      if (b == 0) return DivisionByZero();
      return Value::Float(FloatModulo(a, b));
    case BinaryOp::kPow: {
      const double power = std::pow(a, b);
      const bool fails =
          (a == 0 && b < 0) || (a < 0 && b != std::floor(b)) ||
          (std::isinf(power) && std::isfinite(a) && std::isfinite(b));
      if (fails) return InvalidArgument("** has no result");
      return Value::Float(power);
    }
  }
  return Overflow();
}

// Copies of `text`, `size` bytes in all, in few and long steps.
Text RepeatText(const Text& text, uint64_t size) {
  Text repeated;
  if (size == 0) return repeated;
  repeated.Append(text);
  while (repeated.size() < size) {
    const Text half = repeated;
    repeated.AppendPart(half, 0, std::min(half.size(), size - repeated.size()));
  }
  return repeated;
}

Result<Value> Repeat(Limits& limits, const Value& value, int64_t count) {
  const auto times = static_cast<uint64_t>(std::max<int64_t>(count, 0));
  if (value.IsString()) {
    const Text& text = value.text();
    uint64_t size = 0;
    if (__builtin_mul_overflow(text.size(), times, &size)) {
      size = kMaxTextBytes + 1;
    }
    RETURN_IF_ERROR(limits.CheckText(size));
    return Value::String(RepeatText(text, size), value.safe());
  }
  const auto& items = value.list().items;
  uint64_t size = 0;
  if (__builtin_mul_overflow(items.size(), times, &size) ||
      size > static_cast<uint64_t>(kMaxRange)) {
    return Limits::Exhausted("the template makes a list that is too long");
  }
  RETURN_IF_ERROR(limits.AllocateItems(size));
  std::vector<Value> repeated;
  for (uint64_t i = 0; i < times && size > 0; ++i) {
    repeated.insert(repeated.end(), items.begin(), items.end());
  }
  return MakeList(value.kind(), std::move(repeated));
}

bool IsRepeatable(const Value& value) {
  return value.IsString() || value.Is(Kind::kList) || value.Is(Kind::kTuple);
}

Result<Value> AddTexts(Limits& limits, const Value& a, const Value& b) {
  // A text that is marked safe escapes the text that joins it.
  const bool safe = a.safe() || b.safe();
  Text left = safe && !a.safe() ? EscapeHtml(a.text()) : a.text();
  const Text right = safe && !b.safe() ? EscapeHtml(b.text()) : b.text();
  RETURN_IF_ERROR(limits.CheckText(left.size() + right.size()));
  left.Append(right);
  return Value::String(std::move(left), safe);
}

Result<Value> AddLists(Limits& limits, const Value& a, const Value& b) {
  std::vector<Value> items = a.list().items;
  const auto& more = b.list().items;
  RETURN_IF_ERROR(limits.AllocateItems(items.size() + more.size()));
  items.insert(items.end(), more.begin(), more.end());
  return MakeList(a.kind(), std::move(items));
}

}  // namespace

Result<Value> Add(Limits& limits, const Value& a, const Value& b) {
  return Apply(limits, BinaryOp::kAdd, a, b);
}

Result<Value> Apply(Limits& limits, BinaryOp op, const Value& a,
                    const Value& b) {
  if (op == BinaryOp::kMod && a.IsString()) {
    return PercentFormat(limits, a, b);
  }
  RETURN_IF_ERROR(CheckDefined(a));
  RETURN_IF_ERROR(CheckDefined(b));
  if (a.IsIntegral() && b.IsIntegral()) {
    return ApplyIntegers(op, a.integer(), b.integer());
  }
  if (a.IsNumber() && b.IsNumber()) {
    return ApplyFloats(op, a.number(), b.number());
  }
  if (op == BinaryOp::kMul) {
    if (IsRepeatable(a) && b.IsIntegral()) {
      return Repeat(limits, a, b.integer());
    }
    if (IsRepeatable(b) && a.IsIntegral()) {
      return Repeat(limits, b, a.integer());
    }
  }
  if (op == BinaryOp::kAdd && a.kind() == b.kind()) {
    if (a.IsString()) return AddTexts(limits, a, b);
    if (IsRepeatable(a)) return AddLists(limits, a, b);
  }
  return InvalidArgument(fmt::format("'{}' does not work on {} and {}",
                                     OpName(op), TypeName(a), TypeName(b)));
}

Result<Value> Negate(const Value& value) {
  RETURN_IF_ERROR(CheckDefined(value));
  if (value.IsIntegral()) {
    return ApplyIntegers(BinaryOp::kSub, 0, value.integer());
  }
  if (value.IsNumber()) return Value::Float(-value.number());
  return InvalidArgument(
      fmt::format("'-' does not work on {}", TypeName(value)));
}

}  // namespace muster::jinja

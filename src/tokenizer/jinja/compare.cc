// Truth, equality, order and membership.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/jinja/operators.h"

namespace muster::jinja {

bool Truthy(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
    case Kind::kInt:
      return value.integer() != 0;
    case Kind::kFloat:
      return value.number() != 0;
    case Kind::kString:
      return !value.text().empty();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView:
      return !value.list().items.empty();
    case Kind::kDict:
      return value.dict().size() > 0;
    case Kind::kGenerator:
    case Kind::kNamespace:
    case Kind::kMacro:
    case Kind::kLoop:
    case Kind::kFunction:
    case Kind::kMethod:
      return true;
  }
  return true;
}

Status CheckDefined(const Value& value) {
  if (!value.IsUndefined()) return Status();
  const std::string_view reason = value.undefined_reason();
  return InvalidArgument(reason.empty() ? "an undefined value is used"
                                        : std::string(reason));
}

namespace {

Result<bool> ListsEqual(Limits& limits, const List& a, const List& b) {
  if (a.items.size() != b.items.size()) return false;
  for (size_t i = 0; i < a.items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool same, Equals(limits, a.items[i], b.items[i]));
    if (!same) return false;
  }
  return true;
}

Result<bool> DictsEqual(Limits& limits, const Dict& a, const Dict& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [key, value] : a.entries()) {
    const Value* other = b.Find(key);
    if (other == nullptr) return false;
    ASSIGN_OR_RETURN(const bool same, Equals(limits, value, *other));
    if (!same) return false;
  }
  return true;
}

// Exact also where an integer has no double.
bool NumbersEqual(const Value& a, const Value& b) {
  if (a.IsIntegral() && b.IsIntegral()) return a.integer() == b.integer();
  return a.number() == b.number();
}

}  // namespace

Result<bool> Equals(Limits& limits, const Value& a, const Value& b) {
  RETURN_IF_ERROR(limits.Step());
  if (a.IsNumber() && b.IsNumber()) return NumbersEqual(a, b);
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kFloat:
      return NumbersEqual(a, b);
    case Kind::kString:
      if (a.text().size() != b.text().size()) return false;
      RETURN_IF_ERROR(limits.Scan(a.text().size()));
      return a.text().view() == b.text().view();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
    case Kind::kView:
      if (&a.list() == &b.list()) return true;
      return ListsEqual(limits, a.list(), b.list());
    case Kind::kGenerator:
    case Kind::kMethod:
      return &a.list() == &b.list();
    case Kind::kDict:
      if (&a.dict() == &b.dict()) return true;
      return DictsEqual(limits, a.dict(), b.dict());
    case Kind::kNamespace:
    case Kind::kMacro:
    case Kind::kLoop:
    case Kind::kFunction:
      return a.object() == b.object();
  }
  return false;
}

Result<bool> Less(Limits& limits, const Value& a, const Value& b) {
  RETURN_IF_ERROR(limits.Step());
  RETURN_IF_ERROR(CheckDefined(a));
  RETURN_IF_ERROR(CheckDefined(b));
  if (a.IsIntegral() && b.IsIntegral()) return a.integer() < b.integer();
  if (a.IsNumber() && b.IsNumber()) return a.number() < b.number();
  if (a.IsString() && b.IsString()) {
    RETURN_IF_ERROR(limits.Scan(std::min(a.text().size(), b.text().size())));
    // The order of UTF-8 bytes is the order of code points.
    return a.text().view() < b.text().view();
  }
  const bool sequences =
      a.kind() == b.kind() && (a.Is(Kind::kList) || a.Is(Kind::kTuple));
  if (!sequences) {
    return InvalidArgument(
        fmt::format("{} and {} have no order", TypeName(a), TypeName(b)));
  }
  const auto& x = a.list().items;
  const auto& y = b.list().items;
  for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    ASSIGN_OR_RETURN(const bool same, Equals(limits, x[i], y[i]));
    if (!same) return Less(limits, x[i], y[i]);
  }
  return x.size() < y.size();
}

namespace {

// a <= b: not the negation of b < a when a number is NaN.
Result<bool> LessOrEqual(Limits& limits, const Value& a, const Value& b) {
  ASSIGN_OR_RETURN(const bool less, Less(limits, a, b));
  if (less) return true;
  return Equals(limits, a, b);
}

Result<bool> Negated(Result<bool> value) {
  if (!value.ok()) return value;
  return !*value;
}

}  // namespace

Result<bool> Compare(Limits& limits, CompareOp op, const Value& a,
                     const Value& b) {
  switch (op) {
    case CompareOp::kEq:
      return Equals(limits, a, b);
    case CompareOp::kNe:
      return Negated(Equals(limits, a, b));
    case CompareOp::kLt:
      return Less(limits, a, b);
    case CompareOp::kLe:
      return LessOrEqual(limits, a, b);
    case CompareOp::kGt:
      return Less(limits, b, a);
    case CompareOp::kGe:
      return LessOrEqual(limits, b, a);
    case CompareOp::kIn:
      return Contains(limits, b, a);
    case CompareOp::kNotIn:
      return Negated(Contains(limits, b, a));
  }
  return false;
}

Result<bool> Contains(Limits& limits, const Value& container,
                      const Value& item) {
  if (container.IsUndefined()) return false;
  if (container.IsString()) {
    if (!item.IsString()) {
      return InvalidArgument(fmt::format(
          "'in' on a string needs a string, found {}", TypeName(item)));
    }
    RETURN_IF_ERROR(limits.Scan(container.text().size()));
    return container.text().view().find(item.text().view()) !=
           std::string_view::npos;
  }
  if (container.IsDict()) {
    RETURN_IF_ERROR(CanonicalKey(item).status());
    return container.dict().Find(item) != nullptr;
  }
  if (!container.IsListLike() || container.Is(Kind::kMethod)) {
    return InvalidArgument(
        fmt::format("'in' needs a container, found {}", TypeName(container)));
  }
  for (const Value& candidate : container.list().items) {
    ASSIGN_OR_RETURN(const bool same, Equals(limits, candidate, item));
    if (same) return true;
  }
  return false;
}

}  // namespace muster::jinja

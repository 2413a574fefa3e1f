#include "tokenizer/jinja/printing.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "tokenizer/jinja/escaping.h"
#include "tokenizer/jinja/objects.h"

namespace muster::jinja {
namespace {

// Shortest digits and decimal exponent of a finite number above zero.
struct Decimal {
  std::string digits;
  int exponent = 0;  // of the first digit
};

Decimal ShortestDecimal(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof(buffer), value,
                                 std::chars_format::scientific);
  const std::string text(buffer, end.ptr);
  const size_t e = text.find('e');
  Decimal decimal;
  decimal.digits = text.substr(0, e);
  std::erase(decimal.digits, '.');
  const size_t digits = text[e + 1] == '+' ? e + 2 : e + 1;
  std::from_chars(text.data() + digits, text.data() + text.size(),
                  decimal.exponent);
  return decimal;
}

}  // namespace

std::string FloatRepr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  const char* sign = std::signbit(value) ? "-" : "";
  if (value == 0) return std::signbit(value) ? "-0.0" : "0.0";
  const auto [digits, exponent] = ShortestDecimal(std::abs(value));
  if (exponent < -4 || exponent >= 16) {
    const std::string rest = digits.substr(1);
    return fmt::format("{}{}{}{}e{}{:02}", sign, digits[0],
                       rest.empty() ? "" : ".", rest, exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  }
  if (exponent < 0) {
    return fmt::format("{}0.{:0>{}}{}", sign, "", -exponent - 1, digits);
  }
  const auto whole = static_cast<size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    return fmt::format("{}{:0<{}}.0", sign, digits, whole);
  }
  return fmt::format("{}{}.{}", sign, digits.substr(0, whole),
                     digits.substr(whole));
}

namespace {

Status CheckLength(const Text& out) {
  if (out.size() <= kMaxTextBytes) return Status();
  return Limits::Exhausted("the template makes a text that is too long");
}

// `level` counts the namespaces around, the only values that can be nested
// without end or hold themselves.
Status PrintNested(Limits& limits, const Value& value, int level, Text* out);

Status PrintItems(Limits& limits, const std::vector<Value>& items, int level,
                  Text* out) {
  bool first = true;
  for (const Value& item : items) {
    if (!first) out->Append(", ");
    first = false;
    RETURN_IF_ERROR(PrintNested(limits, item, level, out));
  }
  return Status();
}

Status PrintList(Limits& limits, const Value& value, int level, Text* out) {
  const List& list = value.list();
  const bool is_tuple = value.Is(Kind::kTuple);
  if (value.Is(Kind::kView)) {
    out->Append(list.label);
    out->Append("(");
  }
  out->Append(is_tuple ? "(" : "[");
  RETURN_IF_ERROR(PrintItems(limits, list.items, level, out));
  if (is_tuple) out->Append(list.items.size() == 1 ? ",)" : ")");
  if (!is_tuple) out->Append("]");
  if (value.Is(Kind::kView)) out->Append(")");
  return Status();
}

Status PrintEntries(Limits& limits, const Dict& dict, int level, Text* out) {
  out->Append("{");
  bool first = true;
  for (const auto& [key, value] : dict.entries()) {
    if (!first) out->Append(", ");
    first = false;
    RETURN_IF_ERROR(PrintNested(limits, key, level, out));
    out->Append(": ");
    RETURN_IF_ERROR(PrintNested(limits, value, level, out));
  }
  out->Append("}");
  return Status();
}

Status PrintNamespace(Limits& limits, const Namespace& space, int level,
                      Text* out) {
  constexpr int kMaxLevel = 8;
  if (level > kMaxLevel) {
    return InvalidArgument("a namespace holds itself or too many others");
  }
  out->Append("<Namespace ");
  RETURN_IF_ERROR(PrintEntries(limits, space.attributes, level, out));
  out->Append(">");
  return Status();
}

Status PrintNested(Limits& limits, const Value& value, int level, Text* out) {
  RETURN_IF_ERROR(limits.Step());
  RETURN_IF_ERROR(CheckLength(*out));
  switch (value.kind()) {
    case Kind::kUndefined:
      out->Append("Undefined");
      return Status();
    case Kind::kNone:
      out->Append("None");
      return Status();
    case Kind::kBool:
      out->Append(value.boolean() ? "True" : "False");
      return Status();
    case Kind::kInt:
      out->Append(fmt::to_string(value.integer()));
      return Status();
    case Kind::kFloat:
      out->Append(FloatRepr(value.number()));
      return Status();
    case Kind::kString:
      RETURN_IF_ERROR(limits.Scan(value.text().size()));
      if (value.safe()) out->Append("Markup(");
      AppendStringRepr(value.text(), out);
      if (value.safe()) out->Append(")");
      return Status();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kView:
      return PrintList(limits, value, level, out);
    case Kind::kRange:
      out->Append(value.list().label);
      return Status();
    case Kind::kDict:
      return PrintEntries(limits, value.dict(), level, out);
    case Kind::kNamespace:
      return PrintNamespace(limits,
                            *static_cast<const Namespace*>(value.object()),
                            level + 1, out);
    case Kind::kMacro:
      out->Append(fmt::format("<Macro '{}'>",
                              static_cast<Macro*>(value.object())->name()));
      return Status();
    case Kind::kGenerator:
    case Kind::kLoop:
    case Kind::kFunction:
    case Kind::kMethod:
      return InvalidArgument(
          fmt::format("a {} cannot be printed", TypeName(value)));
  }
  return Status();
}

}  // namespace

Status PrintRepr(Limits& limits, const Value& value, Text* out) {
  return PrintNested(limits, value, 0, out);
}

Status Print(Limits& limits, const Value& value, Text* out) {
  if (value.IsUndefined()) return Status();
  if (!value.IsString()) {
    RETURN_IF_ERROR(PrintRepr(limits, value, out));
    return CheckLength(*out);
  }
  RETURN_IF_ERROR(limits.Scan(value.text().size()));
  out->Append(value.text());
  return CheckLength(*out);
}

Result<Text> ToText(Limits& limits, const Value& value) {
  if (value.IsString()) return value.text();
  Text text;
  RETURN_IF_ERROR(Print(limits, value, &text));
  RETURN_IF_ERROR(limits.CheckText(text.size()));
  return text;
}

}  // namespace muster::jinja

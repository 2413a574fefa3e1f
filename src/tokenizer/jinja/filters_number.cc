// Filters on numbers, and those that choose among values.
#include <fmt/format.h>

#include <optional>

#include <charconv>
#include <cmath>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/sorting.h"
#include "tokenizer/jinja/text_ops.h"

namespace muster::jinja {
namespace {

// The characters of a number as int() and float() read it: no spaces around,
// no underscores, no plus.
std::string NumberText(const Text& text) {
  std::string digits = Strip(text, Side::kBoth, std::nullopt).bytes();
  std::erase(digits, '_');
  if (digits.size() > 1 && digits[0] == '+' && digits[1] != '-') {
    digits.erase(0, 1);
  }
  return digits;
}

std::optional<double> ParseFloat(const Text& text) {
  const std::string digits = NumberText(text);
  const char* end = digits.data() + digits.size();
  double value = 0;
  const auto read = std::from_chars(digits.data(), end, value);
  if (read.ptr != end || digits.empty()) return std::nullopt;
  if (read.ec == std::errc::result_out_of_range) {
    const bool tiny = digits.find("e-") != std::string::npos;
    return tiny ? 0.0 : std::copysign(HUGE_VAL, digits[0] == '-' ? -1.0 : 1.0);
  }
  return value;
}

std::optional<int64_t> ParseInt(const Text& text, int base) {
  std::string digits = NumberText(text);
  const bool negative = digits.starts_with('-');
  const size_t start = negative ? 1 : 0;
  const std::string_view prefix = base == 16 ? "0x" : base == 8 ? "0o" : "0b";
  if ((base == 16 || base == 8 || base == 2) &&
      std::string_view(digits).substr(start).starts_with(prefix)) {
    digits.erase(start, 2);
  }
  const char* end = digits.data() + digits.size();
  int64_t value = 0;
  const auto read = std::from_chars(digits.data(), end, value, base);
  if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
  return value;
}

std::optional<int64_t> Truncate(double value) {
  if (!(std::abs(value) < 9.2e18)) return std::nullopt;
  return static_cast<int64_t>(value);
}

Result<Value> FilterInt(Interpreter&, const Value& value, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"default", "base"}));
  ASSIGN_OR_RETURN(const int64_t base, IntOr(bound[1], 10));
  if (base < 2 || base > 36) return InvalidArgument("int: base out of range");
  RETURN_IF_ERROR(CheckDefined(value));
  std::optional<int64_t> number;
  if (value.IsIntegral()) number = value.integer();
  if (value.Is(Kind::kFloat)) number = Truncate(value.number());
  if (value.IsString()) {
    number = ParseInt(value.text(), static_cast<int>(base));
    const auto as_float = ParseFloat(value.text());
    if (!number && as_float) number = Truncate(*as_float);
  }
  if (number) return Value::Int(*number);
  return bound[0] == nullptr ? Value::Int(0) : *bound[0];
}

Result<Value> FilterFloat(Interpreter&, const Value& value, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"default"}));
  RETURN_IF_ERROR(CheckDefined(value));
  if (value.IsNumber()) return Value::Float(value.number());
  if (value.IsString()) {
    const auto number = ParseFloat(value.text());
    if (number) return Value::Float(*number);
  }
  return bound[0] == nullptr ? Value::Float(0) : *bound[0];
}

Result<Value> FilterAbs(Interpreter&, const Value& value, const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  RETURN_IF_ERROR(CheckDefined(value));
  if (value.Is(Kind::kFloat)) return Value::Float(std::abs(value.number()));
  if (!value.IsIntegral()) return InvalidArgument("abs: not a number");
  return value.integer() < 0 ? Negate(value) : Value::Int(value.integer());
}

// Rounds the exact value, ties to even, as round() does.
double RoundTo(double value, int64_t precision) {
  if (!std::isfinite(value)) return value;
  if (precision < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    return std::nearbyint(value / scale) * scale;
  }
  const std::string digits = fmt::format("{:.{}f}", value, precision);
  double rounded = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), rounded);
  return rounded;
}

Result<Value> FilterRound(Interpreter&, const Value& value, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"precision", "method"}));
  ASSIGN_OR_RETURN(const int64_t precision, IntOr(bound[0], 0));
  constexpr int64_t kMaxPrecision = 300;
  if (precision > kMaxPrecision || precision < -kMaxPrecision) {
    return InvalidArgument("round: precision out of range");
  }
  std::string method = "common";
  if (bound[1] != nullptr) {
    ASSIGN_OR_RETURN(const Text given, TextArg(bound[1]));
    method = given.bytes();
  }
  RETURN_IF_ERROR(CheckDefined(value));
  if (!value.IsNumber()) return InvalidArgument("round: not a number");
  if (method == "common") {
    if (value.IsIntegral() && precision >= 0) {
      return Value::Int(value.integer());
    }
    const double rounded = RoundTo(value.number(), precision);
    if (!value.IsIntegral()) return Value::Float(rounded);
    return Value::Int(Truncate(rounded).value_or(value.integer()));
  }
  const double scale = std::pow(10.0, static_cast<double>(precision));
  const double scaled = value.number() * scale;
  if (method == "ceil") return Value::Float(std::ceil(scaled) / scale);
  if (method == "floor") return Value::Float(std::floor(scaled) / scale);
  return InvalidArgument("round: method must be common, ceil or floor");
}

Result<Value> FilterSum(Interpreter& in, const Value& value, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"attribute", "start"}));
  ASSIGN_OR_RETURN(const auto items, Iterate(in.limits(), value));
  Value sum = bound[1] == nullptr ? Value::Int(0) : *bound[1];
  if (sum.IsString()) return InvalidArgument("sum: strings are joined");
  for (const Value& item : items) {
    Value term = item;
    if (bound[0] != nullptr && !bound[0]->IsNone()) {
      ASSIGN_OR_RETURN(term, in.GetPath(item, *bound[0]));
    }
    ASSIGN_OR_RETURN(sum, Add(in.limits(), sum, term));
  }
  return sum;
}

Result<Value> Extreme(Interpreter& in, const Value& value, const Args& args,
                      bool largest) {
  ASSIGN_OR_RETURN(const auto bound,
                   Bind(args, {"case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(const auto items, Iterate(in.limits(), value));
  ASSIGN_OR_RETURN(const auto keys,
                   SortKeys(in, items, bound[1], BoolOr(bound[0], false)));
  if (items.empty()) {
    return Value::Undefined("No aggregated item, sequence was empty.");
  }
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool better,
                     largest ? Less(in.limits(), keys[best], keys[i])
                             : Less(in.limits(), keys[i], keys[best]));
    if (better) best = i;
  }
  return items[best];
}

Result<Value> FilterMin(Interpreter& in, const Value& v, const Args& args) {
  return Extreme(in, v, args, false);
}
Result<Value> FilterMax(Interpreter& in, const Value& v, const Args& args) {
  return Extreme(in, v, args, true);
}

Result<Value> FilterAttr(Interpreter& in, const Value& value,
                         const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"name"}, 1));
  ASSIGN_OR_RETURN(const Text name, TextArg(bound[0]));
  // Only attributes, never members of a dict.
  if (value.IsDict() && !HasMethod(value, name.view())) {
    return Value::Undefined(fmt::format("no attribute '{}'", name.bytes()));
  }
  return in.GetAttribute(value, name.view());
}

constexpr Filter kFilters[] = {
    {"abs", FilterAbs},     {"attr", FilterAttr}, {"float", FilterFloat},
    {"int", FilterInt},     {"max", FilterMax},   {"min", FilterMin},
    {"round", FilterRound}, {"sum", FilterSum},
};

}  // namespace

std::span<const Filter> NumberFilters() { return kFilters; }

}  // namespace muster::jinja

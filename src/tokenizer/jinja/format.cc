#include "tokenizer/jinja/format.h"

#include <fmt/format.h>

#include <cmath>

#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/printing.h"
#include "tokenizer/jinja/utf8.h"

namespace muster::jinja {
namespace {

// Widest field and longest fraction: enough for any table, and bounded.
constexpr int kMaxFormatNumber = 1000;

// One % conversion: %(name)-08.2f
struct Conversion {
  std::string name;
  bool left = false;
  bool zero = false;
  bool plus = false;
  int width = 0;
  int precision = -1;
  char type = '\0';
};

bool IsDigitAt(std::string_view text, size_t pos) {
  return pos < text.size() && text[pos] >= '0' && text[pos] <= '9';
}

int ReadInt(std::string_view text, size_t* pos) {
  int value = 0;
  for (; IsDigitAt(text, *pos); ++*pos) {
    value = std::min(value * 10 + (text[*pos] - '0'), kMaxFormatNumber);
  }
  return value;
}

Result<Conversion> ReadConversion(std::string_view text, size_t* pos) {
  Conversion out;
  if (*pos < text.size() && text[*pos] == '(') {
    const size_t end = text.find(')', *pos);
    if (end == std::string_view::npos) {
      return InvalidArgument("format: '(' without ')'");
    }
    out.name = text.substr(*pos + 1, end - *pos - 1);
    *pos = end + 1;
  }
  for (; *pos < text.size(); ++*pos) {
    const char flag = text[*pos];
    if (flag == '-')
      out.left = true;
    else if (flag == '0')
      out.zero = true;
    else if (flag == '+')
      out.plus = true;
    else if (flag != ' ' && flag != '#')
      break;
  }
  out.width = ReadInt(text, pos);
  if (*pos < text.size() && text[*pos] == '.') {
    ++*pos;
    out.precision = ReadInt(text, pos);
  }
  if (*pos >= text.size()) return InvalidArgument("format ends after '%'");
  out.type = text[(*pos)++];
  return out;
}

Result<Text> ConvertText(Limits& limits, const Conversion& c,
                         const Value& value) {
  Text text;
  if (c.type == 'r') {
    RETURN_IF_ERROR(PrintRepr(limits, value, &text));
  } else {
    RETURN_IF_ERROR(Print(limits, value, &text));
  }
  if (c.precision < 0) return text;
  return text.Part(0,
                   ByteOffset(text.view(), static_cast<size_t>(c.precision)));
}

Result<Text> ConvertNumber(const Conversion& c, const Value& value) {
  if (!value.IsNumber()) {
    return InvalidArgument(fmt::format("format %{} needs a number, found {}",
                                       c.type, TypeName(value)));
  }
  const char* plus = c.plus ? "+" : "";
  std::string digits;
  if (c.type == 'd' || c.type == 'i') {
    const double number = std::trunc(value.number());
    const bool fits = value.IsIntegral() || std::abs(number) < 9e18;
    if (!fits) return InvalidArgument("format %d: the number is too large");
    const int64_t integer =
        value.IsIntegral() ? value.integer() : static_cast<int64_t>(number);
    digits = fmt::format("{}{}", integer < 0 ? "" : plus, integer);
  } else if (c.type == 'x' || c.type == 'X' || c.type == 'o') {
    if (!value.IsIntegral()) return InvalidArgument("format: not an integer");
    const int64_t integer = value.integer();
    const uint64_t magnitude = integer < 0 ? 0 - static_cast<uint64_t>(integer)
                                           : static_cast<uint64_t>(integer);
    const char* sign = integer < 0 ? "-" : plus;
    digits = c.type == 'x'   ? fmt::format("{}{:x}", sign, magnitude)
             : c.type == 'X' ? fmt::format("{}{:X}", sign, magnitude)
                             : fmt::format("{}{:o}", sign, magnitude);
  } else {
    const int precision = c.precision < 0 ? 6 : c.precision;
    const double number = value.number();
    const char* sign = std::signbit(number) ? "" : plus;
    digits = c.type == 'f' ? fmt::format("{}{:.{}f}", sign, number, precision)
             : c.type == 'e'
                 ? fmt::format("{}{:.{}e}", sign, number, precision)
                 : fmt::format("{}{:.{}g}", sign, number, precision);
  }
  if (c.zero && !c.left && digits.size() < static_cast<size_t>(c.width)) {
    const bool has_sign = digits[0] == '-' || digits[0] == '+';
    digits.insert(has_sign ? 1 : 0,
                  static_cast<size_t>(c.width) - digits.size(), '0');
  }
  return Text(std::move(digits));
}

Result<Text> Convert(Limits& limits, const Conversion& c, const Value& value) {
  switch (c.type) {
    case 's':
    case 'r':
      return ConvertText(limits, c, value);
    case 'd':
    case 'i':
    case 'f':
    case 'e':
    case 'g':
    case 'x':
    case 'X':
    case 'o':
      return ConvertNumber(c, value);
    default:
      return Status(Code::kUnsupported,
                    fmt::format("format %{} is not supported", c.type));
  }
}

void AppendPadded(const Conversion& c, const Text& text, Text* out) {
  const size_t length = CountCharacters(text.view());
  const auto width = static_cast<size_t>(c.width);
  const std::string padding(width > length ? width - length : 0, ' ');
  if (!c.left) out->Append(padding);
  out->Append(text);
  if (c.left) out->Append(padding);
}

// Hands out the arguments of a % format.
class Arguments {
 public:
  explicit Arguments(const Value& args) : args_(args) {}

  Result<Value> Next(const std::string& name) {
    if (!name.empty()) {
      const Value* value = args_.IsDict() ? args_.dict().Find(name) : nullptr;
      if (value == nullptr) {
        return InvalidArgument(fmt::format("format: no value for '{}'", name));
      }
      used_by_name_ = true;
      return *value;
    }
    const size_t count = args_.Is(Kind::kTuple) ? args_.list().items.size() : 1;
    if (next_ >= count) {
      return InvalidArgument("format: too few arguments");
    }
    return args_.Is(Kind::kTuple) ? args_.list().items[next_++]
                                  : (++next_, args_);
  }

  Status CheckAllUsed() const {
    const bool rest = args_.Is(Kind::kTuple)
                          ? next_ < args_.list().items.size()
                          : next_ == 0 && !args_.IsDict() && !used_by_name_;
    if (!rest) return Status();
    return InvalidArgument("format: not all arguments are used");
  }

 private:
  const Value& args_;
  size_t next_ = 0;
  bool used_by_name_ = false;
};

}  // namespace

Result<Value> PercentFormat(Limits& limits, const Value& format,
                            const Value& args) {
  const Text& text = format.text();
  Arguments arguments(args);
  Text out;
  for (size_t pos = 0; pos < text.size();) {
    const size_t percent = text.view().find('%', pos);
    const size_t end = std::min(percent, text.size());
    out.AppendPart(text, pos, end);
    if (percent == std::string_view::npos) break;
    pos = end + 1;
    ASSIGN_OR_RETURN(const Conversion c, ReadConversion(text.view(), &pos));
    if (c.type == '%') {
      out.Append("%");
      continue;
    }
    ASSIGN_OR_RETURN(const Value value, arguments.Next(c.name));
    ASSIGN_OR_RETURN(const Text converted, Convert(limits, c, value));
    AppendPadded(c, converted, &out);
    RETURN_IF_ERROR(limits.CheckText(out.size()));
  }
  RETURN_IF_ERROR(arguments.CheckAllUsed());
  return Value::String(std::move(out));
}

namespace {

Result<Value> FieldValue(const std::string& name, const Args& args,
                         size_t* next_index) {
  size_t index = 0;
  const bool is_index =
      name.find_first_not_of("0123456789") == std::string::npos;
  if (is_index) {
    size_t pos = 0;
    index = name.empty() ? (*next_index)++
                         : static_cast<size_t>(ReadInt(name, &pos));
    if (index < args.positional.size()) return args.positional[index];
    return InvalidArgument("format: too few arguments");
  }
  if (name.find_first_of(".[") != std::string::npos) {
    return Status(Code::kUnsupported, "format: attributes in a field");
  }
  for (const auto& [key, value] : args.named) {
    if (key == name) return value;
  }
  return InvalidArgument(fmt::format("format: no value for '{}'", name));
}

Status AppendField(Limits& limits, std::string_view field, const Args& args,
                   size_t* next_index, Text* out) {
  if (field.find(':') != std::string_view::npos) {
    return Status(Code::kUnsupported, "format: specifications after ':'");
  }
  const bool has_conversion =
      field.size() >= 2 && field[field.size() - 2] == '!';
  const char conversion = has_conversion ? field.back() : 's';
  if (has_conversion) field.remove_suffix(2);
  ASSIGN_OR_RETURN(const Value value,
                   FieldValue(std::string(field), args, next_index));
  if (conversion == 'r') return PrintRepr(limits, value, out);
  if (conversion == 's') return Print(limits, value, out);
  return InvalidArgument("format: unknown conversion");
}

}  // namespace

Result<Value> BraceFormat(Limits& limits, const Text& format,
                          const Args& args) {
  const std::string_view text = format.view();
  Text out;
  size_t next_index = 0;
  for (size_t pos = 0; pos < text.size();) {
    const size_t brace = std::min(text.find_first_of("{}", pos), text.size());
    out.AppendPart(format, pos, brace);
    if (brace == text.size()) break;
    const bool doubled =
        brace + 1 < text.size() && text[brace + 1] == text[brace];
    if (doubled) {
      out.AppendPart(format, brace, brace + 1);
      pos = brace + 2;
      continue;
    }
    const size_t end = text.find('}', brace + 1);
    if (text[brace] == '}' || end == std::string_view::npos) {
      return InvalidArgument("format: single brace");
    }
    RETURN_IF_ERROR(AppendField(limits, text.substr(brace + 1, end - brace - 1),
                                args, &next_index, &out));
    RETURN_IF_ERROR(limits.CheckText(out.size()));
    pos = end + 1;
  }
  return Value::String(std::move(out));
}

}  // namespace muster::jinja

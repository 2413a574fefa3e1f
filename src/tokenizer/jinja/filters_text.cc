// Filters that make text.
#include <algorithm>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/escaping.h"
#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/printing.h"
#include "tokenizer/jinja/text_ops.h"
#include "tokenizer/jinja/to_json.h"
#include "tokenizer/jinja/utf8.h"

namespace muster::jinja {
namespace {

using Convert = Text (*)(const Text&);

Result<Value> Converted(Interpreter& in, const Value& value, const Args& args,
                        Convert convert) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  ASSIGN_OR_RETURN(const Text text, ToText(in.limits(), value));
  RETURN_IF_ERROR(in.limits().Scan(text.size()));
  Text out = convert(text);
  RETURN_IF_ERROR(in.limits().CheckText(out.size()));
  return Value::String(std::move(out), value.safe());
}

Result<Value> FilterUpper(Interpreter& in, const Value& v, const Args& args) {
  return Converted(in, v, args, Upper);
}
Result<Value> FilterLower(Interpreter& in, const Value& v, const Args& args) {
  return Converted(in, v, args, Lower);
}
Result<Value> FilterCapitalize(Interpreter& in, const Value& v,
                               const Args& args) {
  return Converted(in, v, args, Capitalize);
}
Result<Value> FilterTitle(Interpreter& in, const Value& v, const Args& args) {
  return Converted(in, v, args, [](const Text& text) {
    return Title(text, [](char32_t previous) {
      return IsSpace(previous) || previous == '-' || previous == '(' ||
             previous == '{' || previous == '[' || previous == '<';
    });
  });
}

Result<Value> FilterString(Interpreter& in, const Value& value,
                           const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  if (value.IsString()) return value;
  ASSIGN_OR_RETURN(Text text, ToText(in.limits(), value));
  return Value::String(std::move(text));
}

Result<Value> FilterSafe(Interpreter& in, const Value& value,
                         const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  ASSIGN_OR_RETURN(Text text, ToText(in.limits(), value));
  return Value::String(std::move(text), true);
}

Result<Value> FilterForceEscape(Interpreter& in, const Value& value,
                                const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  ASSIGN_OR_RETURN(const Text text, ToText(in.limits(), value));
  RETURN_IF_ERROR(in.limits().Scan(text.size()));
  Text escaped = EscapeHtml(text);
  RETURN_IF_ERROR(in.limits().CheckText(escaped.size()));
  return Value::String(std::move(escaped), true);
}

Result<Value> FilterEscape(Interpreter& in, const Value& value,
                           const Args& args) {
  return value.safe() ? value : FilterForceEscape(in, value, args);
}

Result<Value> FilterTrim(Interpreter& in, const Value& value,
                         const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"chars"}));
  ASSIGN_OR_RETURN(const Text text, ToText(in.limits(), value));
  std::optional<std::string> chars;
  if (bound[0] != nullptr && !bound[0]->IsNone()) {
    ASSIGN_OR_RETURN(const Text given, TextArg(bound[0]));
    chars = given.bytes();
  }
  RETURN_IF_ERROR(in.limits().Scan(text.size()));
  RETURN_IF_ERROR(in.limits().CheckText(text.size()));
  return Value::String(Strip(text, Side::kBoth, chars), value.safe());
}

Result<Value> FilterReplace(Interpreter& in, const Value& value,
                            const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"old", "new", "count"}, 2));
  int64_t count = -1;
  if (bound[2] != nullptr && !bound[2]->IsNone()) {
    ASSIGN_OR_RETURN(count, IntegerArg(*bound[2], "count"));
  }
  ASSIGN_OR_RETURN(const Text text, ToText(in.limits(), value));
  ASSIGN_OR_RETURN(const Text old_part, ToText(in.limits(), *bound[0]));
  ASSIGN_OR_RETURN(const Text new_part, ToText(in.limits(), *bound[1]));
  ASSIGN_OR_RETURN(Text out,
                   Replace(in.limits(), text, old_part, new_part, count));
  return Value::String(std::move(out));
}

Result<Value> FilterFormat(Interpreter& in, const Value& value,
                           const Args& args) {
  ASSIGN_OR_RETURN(Text text, ToText(in.limits(), value));
  Value values;
  if (!args.named.empty()) {
    if (!args.positional.empty()) {
      return InvalidArgument("format takes either kind of arguments");
    }
    Dict dict;
    for (const auto& [name, arg] : args.named) dict.Set(name, arg);
    ASSIGN_OR_RETURN(values, MakeDict(std::move(dict)));
  } else {
    ASSIGN_OR_RETURN(values, MakeList(Kind::kTuple, args.positional));
  }
  return PercentFormat(in.limits(), Value::String(std::move(text)), values);
}

Result<Value> FilterCenter(Interpreter& in, const Value& value,
                           const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"width"}));
  ASSIGN_OR_RETURN(const int64_t width, IntOr(bound[0], 80));
  ASSIGN_OR_RETURN(const Text text, ToText(in.limits(), value));
  ASSIGN_OR_RETURN(Text out, Pad(in.limits(), text, width, Side::kBoth, " "));
  return Value::String(std::move(out));
}

// The indentation of one level: a number of spaces or a string.
Result<std::string> Indentation(const Value& width) {
  if (width.IsString()) return width.text().bytes();
  ASSIGN_OR_RETURN(const int64_t spaces, IntegerArg(width, "indentation"));
  constexpr int64_t kMaxSpaces = 1000;
  if (spaces > kMaxSpaces) {
    return Limits::Exhausted("the indentation is too wide");
  }
  return std::string(static_cast<size_t>(std::max<int64_t>(spaces, 0)), ' ');
}

Result<Value> FilterIndent(Interpreter& in, const Value& value,
                           const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"width", "first", "blank"}));
  ASSIGN_OR_RETURN(
      const std::string indent,
      Indentation(bound[0] == nullptr ? Value::Int(4) : *bound[0]));
  ASSIGN_OR_RETURN(Text text, TextArg(&value));
  text.Append("\n");
  ASSIGN_OR_RETURN(const std::vector<Text> lines,
                   SplitLines(in.limits(), text, false));
  Text out;
  if (BoolOr(bound[1], false)) out.Append(indent);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (i > 0) out.Append("\n");
    const bool indented =
        i > 0 && (BoolOr(bound[2], false) || !lines[i].empty());
    if (indented) out.Append(indent);
    out.Append(lines[i]);
    if (out.size() > kMaxTextBytes) break;
  }
  RETURN_IF_ERROR(in.limits().CheckText(out.size()));
  return Value::String(std::move(out), value.safe());
}

Result<Value> FilterWordCount(Interpreter& in, const Value& value,
                              const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  ASSIGN_OR_RETURN(const Text text, ToText(in.limits(), value));
  RETURN_IF_ERROR(in.limits().Scan(text.size()));
  int64_t count = 0;
  bool inside = false;
  for (size_t pos = 0; pos < text.size();) {
    const Character c = CharacterAt(text.view(), pos);
    const bool is_word = c.code == '_' || IsAlpha(c.code) || IsDigit(c.code);
    if (is_word && !inside) ++count;
    inside = is_word;
    pos += c.size;
  }
  return Value::Int(count);
}

// Characters [0, count) of the text.
Text Head(const Text& text, int64_t count) {
  const auto index = static_cast<size_t>(std::max<int64_t>(count, 0));
  return text.Part(0, ByteOffset(text.view(), index));
}

Result<Value> FilterTruncate(Interpreter& in, const Value& value,
                             const Args& args) {
  ASSIGN_OR_RETURN(const auto bound,
                   Bind(args, {"length", "killwords", "end", "leeway"}));
  ASSIGN_OR_RETURN(const int64_t length, IntOr(bound[0], 255));
  Text end("...");
  if (bound[2] != nullptr) {
    ASSIGN_OR_RETURN(end, TextArg(bound[2]));
  }
  ASSIGN_OR_RETURN(const int64_t leeway, IntOr(bound[3], 5));
  ASSIGN_OR_RETURN(const Text text, TextArg(&value));
  const auto end_length = static_cast<int64_t>(CountCharacters(end.view()));
  if (length < end_length || leeway < 0) {
    return InvalidArgument("truncate: the length is too small");
  }
  ASSIGN_OR_RETURN(const int64_t count, Length(in.limits(), value));
  if (count - leeway <= length) return value;
  Text out = Head(text, length - end_length);
  if (!BoolOr(bound[1], false)) {
    ASSIGN_OR_RETURN(const auto parts, Split(in.limits(), out, " ", 1, true));
    out = parts[0];
  }
  out.Append(end);
  RETURN_IF_ERROR(in.limits().CheckText(out.size()));
  return Value::String(std::move(out));
}

Result<Value> FilterToJson(Interpreter& in, const Value& value,
                           const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"ensure_ascii", "indent",
                                                 "separators", "sort_keys"}));
  JsonStyle style;
  style.ensure_ascii = BoolOr(bound[0], false);
  style.sort_keys = BoolOr(bound[3], false);
  if (bound[1] != nullptr && !bound[1]->IsNone()) {
    ASSIGN_OR_RETURN(style.indent, Indentation(*bound[1]));
    style.item_separator.assign(1, ',');
  }
  if (bound[2] != nullptr && !bound[2]->IsNone()) {
    ASSIGN_OR_RETURN(const auto pair, Iterate(in.limits(), *bound[2]));
    if (pair.size() != 2) return InvalidArgument("separators: expected two");
    ASSIGN_OR_RETURN(const Text item, TextArg(&pair[0]));
    ASSIGN_OR_RETURN(const Text key, TextArg(&pair[1]));
    style.item_separator = item.bytes();
    style.key_separator = key.bytes();
  }
  ASSIGN_OR_RETURN(Text json, ToJson(in.limits(), value, style));
  return Value::String(std::move(json));
}

constexpr Filter kFilters[] = {
    {"capitalize", FilterCapitalize},
    {"center", FilterCenter},
    {"e", FilterEscape},
    {"escape", FilterEscape},
    {"forceescape", FilterForceEscape},
    {"format", FilterFormat},
    {"indent", FilterIndent},
    {"lower", FilterLower},
    {"replace", FilterReplace},
    {"safe", FilterSafe},
    {"string", FilterString},
    {"title", FilterTitle},
    {"tojson", FilterToJson},
    {"trim", FilterTrim},
    {"truncate", FilterTruncate},
    {"upper", FilterUpper},
    {"wordcount", FilterWordCount},
};

}  // namespace

std::span<const Filter> TextFilters() { return kFilters; }

}  // namespace muster::jinja

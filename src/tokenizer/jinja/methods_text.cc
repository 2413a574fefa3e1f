// Methods of strings that make strings.
#include <fmt/format.h>

#include <optional>

#include <algorithm>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/format.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/text_ops.h"
#include "tokenizer/jinja/utf8.h"

namespace muster::jinja {
namespace {

Result<Value> Made(Interpreter& in, Text text) {
  RETURN_IF_ERROR(in.limits().CheckText(text.size()));
  return Value::String(std::move(text));
}

template <Text (*kConvert)(const Text&)>
Result<Value> Converted(Interpreter& in, const Text& text, const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  RETURN_IF_ERROR(in.limits().Scan(text.size()));
  return Made(in, kConvert(text));
}

Text PythonTitle(const Text& text) {
  return Title(text, [](char32_t previous) { return !IsAlpha(previous); });
}

template <Side kSide>
Result<Value> Stripped(Interpreter& in, const Text& text, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"chars"}));
  std::optional<std::string> chars;
  if (bound[0] != nullptr && !bound[0]->IsNone()) {
    ASSIGN_OR_RETURN(const Text given, TextArg(bound[0]));
    chars = given.bytes();
  }
  RETURN_IF_ERROR(in.limits().Scan(text.size()));
  return Made(in, Strip(text, kSide, chars));
}

Result<Value> ListOf(Interpreter& in, const std::vector<Text>& parts) {
  RETURN_IF_ERROR(in.limits().AllocateItems(parts.size()));
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const Text& part : parts) items.push_back(Value::String(part));
  return MakeList(Kind::kList, std::move(items));
}

template <bool kFromRight>
Result<Value> SplitAt(Interpreter& in, const Text& text, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"sep", "maxsplit"}));
  ASSIGN_OR_RETURN(const int64_t max_splits, IntOr(bound[1], -1));
  if (bound[0] == nullptr || bound[0]->IsNone()) {
    ASSIGN_OR_RETURN(const auto parts,
                     SplitSpaces(in.limits(), text, max_splits, kFromRight));
    return ListOf(in, parts);
  }
  ASSIGN_OR_RETURN(const Text separator, TextArg(bound[0]));
  if (separator.empty()) return InvalidArgument("split: empty separator");
  ASSIGN_OR_RETURN(const auto parts, Split(in.limits(), text, separator.view(),
                                           max_splits, kFromRight));
  return ListOf(in, parts);
}

Result<Value> MethodSplitLines(Interpreter& in, const Text& text,
                               const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"keepends"}));
  ASSIGN_OR_RETURN(const auto parts,
                   SplitLines(in.limits(), text, BoolOr(bound[0], false)));
  return ListOf(in, parts);
}

// (before, separator, behind)
template <bool kFromRight>
Result<Value> PartitionAt(Interpreter& in, const Text& text, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"sep"}, 1));
  ASSIGN_OR_RETURN(const Text separator, TextArg(bound[0]));
  if (separator.empty()) return InvalidArgument("partition: empty separator");
  ASSIGN_OR_RETURN(const auto parts,
                   Split(in.limits(), text, separator.view(), 1, kFromRight));
  const Value none = Value::String("");
  std::vector<Value> items;
  if (parts.size() == 2) {
    items = {Value::String(parts[0]), Value::String(separator),
             Value::String(parts[1])};
  } else if (kFromRight) {
    items = {none, none, Value::String(text)};
  } else {
    items = {Value::String(text), none, none};
  }
  return MakeList(Kind::kTuple, std::move(items));
}

Result<Value> MethodReplace(Interpreter& in, const Text& text,
                            const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"old", "new", "count"}, 2));
  ASSIGN_OR_RETURN(const Text old_part, TextArg(bound[0]));
  ASSIGN_OR_RETURN(const Text new_part, TextArg(bound[1]));
  ASSIGN_OR_RETURN(const int64_t count, IntOr(bound[2], -1));
  ASSIGN_OR_RETURN(Text out,
                   Replace(in.limits(), text, old_part, new_part, count));
  return Value::String(std::move(out));
}

Result<Value> MethodJoin(Interpreter& in, const Text& text, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"iterable"}, 1));
  ASSIGN_OR_RETURN(const auto items, Iterate(in.limits(), *bound[0]));
  Text out;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(const Text part, TextArg(&items[i]));
    if (i > 0) out.Append(text);
    out.Append(part);
    if (out.size() > kMaxTextBytes) break;
  }
  return Made(in, std::move(out));
}

template <Side kTextAt>
Result<Value> Padded(Interpreter& in, const Text& text, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"width", "fillchar"}, 1));
  ASSIGN_OR_RETURN(const int64_t width, IntegerArg(*bound[0], "width"));
  Text fill(" ");
  if (bound[1] != nullptr) {
    ASSIGN_OR_RETURN(fill, TextArg(bound[1]));
  }
  if (CountCharacters(fill.view()) != 1) {
    return InvalidArgument("expected one character to fill with");
  }
  ASSIGN_OR_RETURN(Text out,
                   Pad(in.limits(), text, width, kTextAt, fill.view()));
  return Value::String(std::move(out));
}

template <bool kPrefix>
Result<Value> WithoutAffix(Interpreter& in, const Text& text,
                           const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"affix"}, 1));
  ASSIGN_OR_RETURN(const Text affix, TextArg(bound[0]));
  const bool holds = kPrefix ? text.view().starts_with(affix.view())
                             : text.view().ends_with(affix.view());
  if (!holds) return Made(in, text);
  const size_t rest = text.size() - affix.size();
  return Made(
      in, kPrefix ? text.Part(affix.size(), text.size()) : text.Part(0, rest));
}

Result<Value> MethodFormat(Interpreter& in, const Text& text,
                           const Args& args) {
  return BraceFormat(in.limits(), text, args);
}

constexpr NamedTextMethod kMethods[] = {
    {"capitalize", Converted<Capitalize>},
    {"casefold", Converted<Lower>},
    {"center", Padded<Side::kBoth>},
    {"format", MethodFormat},
    {"join", MethodJoin},
    {"ljust", Padded<Side::kLeft>},
    {"lower", Converted<Lower>},
    {"lstrip", Stripped<Side::kLeft>},
    {"partition", PartitionAt<false>},
    {"removeprefix", WithoutAffix<true>},
    {"removesuffix", WithoutAffix<false>},
    {"replace", MethodReplace},
    {"rjust", Padded<Side::kRight>},
    {"rpartition", PartitionAt<true>},
    {"rsplit", SplitAt<true>},
    {"rstrip", Stripped<Side::kRight>},
    {"split", SplitAt<false>},
    {"splitlines", MethodSplitLines},
    {"strip", Stripped<Side::kBoth>},
    {"title", Converted<PythonTitle>},
    {"upper", Converted<Upper>},
};

}  // namespace

std::span<const NamedTextMethod> TextMakingMethods() { return kMethods; }

}  // namespace muster::jinja

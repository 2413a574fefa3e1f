// Methods of strings that look for something.
#include <algorithm>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/utf8.h"

namespace muster::jinja {
namespace {

constexpr auto kNpos = std::string_view::npos;

// The characters [start, end) that methods such as find() may look at.
struct Window {
  size_t begin = 0;  // bytes
  size_t end = 0;
  int64_t first = 0;  // characters before `begin`
  bool valid = true;  // false: starts behind the end
};

Result<Window> WindowOf(Limits& limits, const Text& text, const Value* start,
                        const Value* end) {
  RETURN_IF_ERROR(limits.Scan(text.size()));
  const auto length = static_cast<int64_t>(CountCharacters(text.view()));
  const auto place = [&](const Value* bound,
                         int64_t otherwise) -> Result<int64_t> {
    if (bound == nullptr || bound->IsNone()) return otherwise;
    ASSIGN_OR_RETURN(int64_t index, IntegerArg(*bound, "index"));
    if (index < 0) index = std::max<int64_t>(index + length, 0);
    return index;
  };
  ASSIGN_OR_RETURN(const int64_t from, place(start, 0));
  ASSIGN_OR_RETURN(const int64_t to, place(end, length));
  Window window;
  window.valid = from <= length && from <= to;
  window.first = std::min(from, length);
  window.begin = ByteOffset(text.view(), static_cast<size_t>(window.first));
  window.end = std::max(
      window.begin,
      ByteOffset(text.view(), static_cast<size_t>(std::min(to, length))));
  return window;
}

template <bool kPrefix>
Result<Value> StartsOrEnds(Interpreter& in, const Text& text,
                           const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"prefix", "start", "end"}, 1));
  ASSIGN_OR_RETURN(const Window window,
                   WindowOf(in.limits(), text, bound[1], bound[2]));
  std::vector<Value> candidates = {*bound[0]};
  if (bound[0]->Is(Kind::kTuple)) candidates = bound[0]->list().items;
  const std::string_view part =
      text.view().substr(window.begin, window.end - window.begin);
  for (const Value& candidate : candidates) {
    ASSIGN_OR_RETURN(const Text affix, TextArg(&candidate));
    RETURN_IF_ERROR(in.limits().Scan(affix.size()));
    const bool holds =
        kPrefix ? part.starts_with(affix.view()) : part.ends_with(affix.view());
    if (holds && window.valid) return Value::Bool(true);
  }
  return Value::Bool(false);
}

// The character where `sub` is found; -1: nowhere.
Result<int64_t> FindIn(Interpreter& in, const Text& text, const Args& args,
                       bool from_right) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"sub", "start", "end"}, 1));
  ASSIGN_OR_RETURN(const Text sub, TextArg(bound[0]));
  ASSIGN_OR_RETURN(const Window window,
                   WindowOf(in.limits(), text, bound[1], bound[2]));
  if (!window.valid) return int64_t{-1};
  const std::string_view part =
      text.view().substr(window.begin, window.end - window.begin);
  const size_t found =
      from_right ? part.rfind(sub.view()) : part.find(sub.view());
  if (found == kNpos) return int64_t{-1};
  return window.first +
         static_cast<int64_t>(CountCharacters(part.substr(0, found)));
}

template <bool kFromRight>
Result<Value> MethodFind(Interpreter& in, const Text& text, const Args& args) {
  ASSIGN_OR_RETURN(const int64_t place, FindIn(in, text, args, kFromRight));
  return Value::Int(place);
}

template <bool kFromRight>
Result<Value> MethodIndex(Interpreter& in, const Text& text, const Args& args) {
  ASSIGN_OR_RETURN(const int64_t place, FindIn(in, text, args, kFromRight));
  if (place < 0) return InvalidArgument("index: the substring is not found");
  return Value::Int(place);
}

Result<Value> MethodCount(Interpreter& in, const Text& text, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"sub", "start", "end"}, 1));
  ASSIGN_OR_RETURN(const Text sub, TextArg(bound[0]));
  ASSIGN_OR_RETURN(const Window window,
                   WindowOf(in.limits(), text, bound[1], bound[2]));
  if (!window.valid) return Value::Int(0);
  const std::string_view part =
      text.view().substr(window.begin, window.end - window.begin);
  if (sub.empty()) {
    return Value::Int(static_cast<int64_t>(CountCharacters(part)) + 1);
  }
  int64_t count = 0;
  for (size_t pos = part.find(sub.view()); pos != kNpos; ++count) {
    pos = part.find(sub.view(), pos + sub.size());
  }
  return Value::Int(count);
}

// Every character satisfies `holds` and there is one.
template <bool (*kHolds)(char32_t)>
Result<Value> AllAre(Interpreter& in, const Text& text, const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  RETURN_IF_ERROR(in.limits().Scan(text.size()));
  for (size_t pos = 0; pos < text.size();) {
    const Character c = CharacterAt(text.view(), pos);
    if (!kHolds(c.code)) return Value::Bool(false);
    pos += c.size;
  }
  return Value::Bool(!text.empty());
}

bool IsAlphaOrDigit(char32_t code) { return IsAlpha(code) || IsDigit(code); }
bool IsAsciiCode(char32_t code) { return code < 0x80; }

template <bool kUpper>
Result<Value> HasCase(Interpreter& in, const Text& text, const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  ASSIGN_OR_RETURN(const bool holds, in.CallTest(kUpper ? "upper" : "lower",
                                                 Value::String(text), args));
  return Value::Bool(holds);
}

constexpr NamedTextMethod kMethods[] = {
    {"count", MethodCount},
    {"endswith", StartsOrEnds<false>},
    {"find", MethodFind<false>},
    {"index", MethodIndex<false>},
    {"isalnum", AllAre<IsAlphaOrDigit>},
    {"isalpha", AllAre<IsAlpha>},
    {"isascii", AllAre<IsAsciiCode>},
    {"isdecimal", AllAre<IsDigit>},
    {"isdigit", AllAre<IsDigit>},
    {"islower", HasCase<false>},
    {"isnumeric", AllAre<IsDigit>},
    {"isspace", AllAre<IsSpace>},
    {"isupper", HasCase<true>},
    {"rfind", MethodFind<true>},
    {"rindex", MethodIndex<true>},
    {"startswith", StartsOrEnds<true>},
};

}  // namespace

std::span<const NamedTextMethod> TextSearchMethods() { return kMethods; }

}  // namespace muster::jinja

// Methods of lists and dicts, and which names are methods at all.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/sorting.h"

namespace muster::jinja {
namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 5> kDictMethods = {
    "copy", "get", "items", "keys", "values"};
constexpr std::array<std::string_view, 3> kListMethods = {"copy", "count",
                                                          "index"};
constexpr std::array<std::string_view, 2> kTupleMethods = {"count", "index"};
constexpr std::array<std::string_view, 2> kLoopMethods = {"changed", "cycle"};
constexpr std::array<std::string_view, 6> kDictChanges = {
    "clear", "fromkeys", "pop", "popitem", "setdefault", "update"};
constexpr std::array<std::string_view, 8> kListChanges = {
    "append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"};
// Of strings. All other methods take arguments by position only.
constexpr std::array<std::string_view, 4> kMethodsWithNames = {
    "format", "rsplit", "split", "splitlines"};

bool Has(Names names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<Value> MethodGet(const Dict& dict, const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"key", "default"}, 1));
  RETURN_IF_ERROR(CanonicalKey(*bound[0]).status());
  const Value* value = dict.Find(*bound[0]);
  if (value != nullptr) return *value;
  return bound[1] == nullptr ? Value::None() : *bound[1];
}

Result<Value> CallDictMethod(Interpreter& in, const Value& object,
                             std::string_view name, const Args& args) {
  const Dict& dict = object.dict();
  if (name == "get") return MethodGet(dict, args);
  RETURN_IF_ERROR(Bind(args, {}).status());
  if (name == "copy") return object;
  if (name == "items") {
    ASSIGN_OR_RETURN(auto items, DictItems(in.limits(), dict));
    return MakeList(Kind::kView, std::move(items), "dict_items");
  }
  RETURN_IF_ERROR(in.limits().AllocateItems(dict.size()));
  std::vector<Value> parts;
  for (const auto& [key, value] : dict.entries()) {
    parts.push_back(name == "keys" ? key : value);
  }
  return MakeList(Kind::kView, std::move(parts),
                  name == "keys" ? "dict_keys" : "dict_values");
}

Result<Value> CallListMethod(Interpreter& in, const Value& object,
                             std::string_view name, const Args& args) {
  if (name == "copy") {
    RETURN_IF_ERROR(Bind(args, {}).status());
    return object;
  }
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"value"}, 1));
  const auto& items = object.list().items;
  int64_t count = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(const bool same, Equals(in.limits(), items[i], *bound[0]));
    if (!same) continue;
    if (name == "index") return Value::Int(static_cast<int64_t>(i));
    ++count;
  }
  if (name == "count") return Value::Int(count);
  return InvalidArgument("index: the value is not in the list");
}

}  // namespace

bool HasMethod(const Value& object, std::string_view name) {
  if (object.IsString()) return FindTextMethod(name) != nullptr;
  if (object.IsDict()) return Has(kDictMethods, name);
  if (object.Is(Kind::kList)) return Has(kListMethods, name);
  if (object.Is(Kind::kTuple) || object.Is(Kind::kRange)) {
    return Has(kTupleMethods, name);
  }
  return object.Is(Kind::kLoop) && Has(kLoopMethods, name);
}

bool IsForbidden(const Value& object, std::string_view name) {
  if (object.IsDict()) return Has(kDictChanges, name);
  return object.Is(Kind::kList) && Has(kListChanges, name);
}

Result<Value> CallMethod(Interpreter& interpreter, const Value& object,
                         std::string_view name, const Args& args) {
  const bool takes_names = object.IsString() && Has(kMethodsWithNames, name);
  if (!args.named.empty() && !takes_names) {
    return InvalidArgument(
        fmt::format("method '{}' takes no named arguments", name));
  }
  if (object.IsString()) {
    const TextMethod method = FindTextMethod(name);
    if (method != nullptr) return method(interpreter, object.text(), args);
  }
  if (object.IsDict()) return CallDictMethod(interpreter, object, name, args);
  if (object.IsListLike()) {
    return CallListMethod(interpreter, object, name, args);
  }
  return InvalidArgument(
      fmt::format("'{}' object has no method '{}'", TypeName(object), name));
}

}  // namespace muster::jinja

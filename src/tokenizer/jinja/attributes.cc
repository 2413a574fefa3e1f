// object.name and object[key], with the precedence that Jinja2 gives to
// methods over the members of a dict.
#include <fmt/format.h>

#include <optional>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/interpreter.h"
#include "tokenizer/jinja/operators.h"

namespace muster::jinja {
namespace {

Value Missing(const Value& object, std::string_view name) {
  return Value::Undefined(
      fmt::format("'{} object' has no attribute '{}'", TypeName(object), name));
}

// nullopt: a loop has no such attribute.
std::optional<Value> LoopAttribute(const Loop& loop, std::string_view name) {
  const auto number = [](size_t value) {
    return Value::Int(static_cast<int64_t>(value));
  };
  const auto item = [&](size_t index, const char* which) {
    if (index < loop.items.size()) return loop.items[index];
    return Value::Undefined(fmt::format("there is no {} item", which));
  };
  const size_t index = loop.index;
  if (name == "index") return number(index + 1);
  if (name == "index0") return number(index);
  if (name == "length") return number(loop.length);
  if (name == "revindex") return number(loop.length - index);
  if (name == "revindex0") return number(loop.length - index - 1);
  if (name == "first") return Value::Bool(index == 0);
  if (name == "last") return Value::Bool(index + 1 >= loop.length);
  if (name == "previtem") return item(index - 1, "previous");
  if (name == "nextitem") return item(index + 1, "next");
  if (name == "depth") return Value::Int(loop.depth);
  if (name == "depth0") return Value::Int(loop.depth - 1);
  return std::nullopt;
}

Result<Value> BoundMethod(const Value& object, std::string_view name) {
  return MakeList(Kind::kMethod, {object}, std::string(name));
}

}  // namespace

Result<Value> Interpreter::GetAttribute(const Value& object,
                                        std::string_view name) {
  RETURN_IF_ERROR(CheckDefined(object));
  if (object.Is(Kind::kNamespace)) {
    const auto& space = *static_cast<Namespace*>(object.object());
    const Value* value = space.attributes.Find(name);
    return value == nullptr ? Missing(object, name) : *value;
  }
  if (object.Is(Kind::kLoop)) {
    auto value = LoopAttribute(*static_cast<Loop*>(object.object()), name);
    if (value) return *value;
  }
  if (object.Is(Kind::kMacro) && name == "name") {
    return Value::String(static_cast<Macro*>(object.object())->name());
  }
  const bool is_group = object.Is(Kind::kTuple) && !object.list().label.empty();
  if (is_group && name == "grouper") return object.list().items[0];
  if (is_group && name == "list") return object.list().items[1];
  if (IsForbidden(object, name)) {
    return Value::Undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe", name,
                    TypeName(object)));
  }
  if (HasMethod(object, name)) return BoundMethod(object, name);
  if (object.IsDict()) {
    const Value* value = object.dict().Find(name);
    if (value != nullptr) return *value;
  }
  return Missing(object, name);
}

Result<Value> Interpreter::GetItem(const Value& object, const Value& key) {
  RETURN_IF_ERROR(CheckDefined(object));
  if (object.IsDict()) {
    const Value* value = object.dict().Find(key);
    if (value != nullptr) return *value;
  }
  if (key.IsString()) {
    // Items come first: what is left are methods and attributes.
    if (!object.IsDict() || HasMethod(object, key.text().view()) ||
        IsForbidden(object, key.text().view())) {
      return GetAttribute(object, key.text().view());
    }
    return Missing(object, key.text().view());
  }
  if (key.IsIntegral()) return ItemAt(limits_, object, key.integer());
  return Value::Undefined(fmt::format("{} has no element of type {}",
                                      TypeName(object), TypeName(key)));
}

Result<Value> Interpreter::GetPath(const Value& object, const Value& path) {
  if (!path.IsString()) return GetItem(object, path);
  Value value = object;
  const std::string_view text = path.text().view();
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find('.', begin), text.size());
    const std::string part(text.substr(begin, end - begin));
    const bool is_index =
        !part.empty() && part.size() < 10 &&
        part.find_first_not_of("0123456789") == std::string::npos;
    const Value key =
        is_index ? Value::Int(std::stoll(part)) : Value::String(part);
    ASSIGN_OR_RETURN(value, GetItem(value, key));
    begin = end + 1;
  }
  return value;
}

}  // namespace muster::jinja

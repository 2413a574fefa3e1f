#include "tokenizer/jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace muster::jinja {

// Here rather than in the header: every function that handles values would
// otherwise carry copies of them.
Value::Value() = default;
Value::Value(const Value& other) = default;
Value& Value::operator=(const Value& other) = default;
Value::Value(Value&& other) noexcept = default;
Value& Value::operator=(Value&& other) noexcept = default;
Value::~Value() = default;

Value Value::Undefined(std::string why) {
  Value v;
  v.data_ = std::make_shared<const Text>(std::move(why));
  return v;
}

Value Value::None() {
  Value v;
  v.kind_ = Kind::kNone;
  return v;
}

Value Value::Bool(bool value) {
  Value v;
  v.kind_ = Kind::kBool;
  v.data_ = static_cast<int64_t>(value);
  return v;
}

Value Value::Int(int64_t value) {
  Value v;
  v.kind_ = Kind::kInt;
  v.data_ = value;
  return v;
}

Value Value::Float(double value) {
  Value v;
  v.kind_ = Kind::kFloat;
  v.data_ = value;
  return v;
}

Value Value::String(Text text, bool safe) {
  Value v;
  v.kind_ = Kind::kString;
  v.safe_ = safe;
  v.data_ = std::make_shared<const Text>(std::move(text));
  return v;
}

Value Value::String(std::string template_bytes) {
  return String(Text(std::move(template_bytes)));
}

Value Value::FromObject(Kind kind, Object* object) {
  Value v;
  v.kind_ = kind;
  v.data_ = object;
  return v;
}

Value Value::FromList(Kind kind, std::shared_ptr<const List> list) {
  Value v;
  v.kind_ = kind;
  v.data_ = std::move(list);
  return v;
}

Value Value::FromDict(std::shared_ptr<const Dict> dict) {
  Value v;
  v.kind_ = Kind::kDict;
  v.data_ = std::move(dict);
  return v;
}

bool Value::IsListLike() const {
  return std::holds_alternative<ListPtr>(data_);
}

double Value::number() const {
  if (kind_ == Kind::kFloat) return std::get<double>(data_);
  return static_cast<double>(integer());
}

std::string_view Value::undefined_reason() const {
  if (kind_ != Kind::kUndefined) return {};
  const auto* reason = std::get_if<TextPtr>(&data_);
  return reason == nullptr ? std::string_view() : (*reason)->view();
}

int Value::depth() const {
  if (IsListLike()) return list().depth;
  return IsDict() ? dict().depth() : 0;
}

namespace {

std::string StringKey(std::string_view text) {
  std::string key(1, 's');
  key += text;
  return key;
}

}  // namespace

Result<std::string> CanonicalKey(const Value& key) {
  if (key.IsString()) return StringKey(key.text().view());
  if (key.IsNone()) return std::string("n");
  if (key.IsIntegral()) return fmt::format("i{}", key.integer());
  if (key.Is(Kind::kFloat)) {
    const double number = key.number();
    const bool integral =
        number == std::floor(number) && std::abs(number) < 9e18;
    if (integral) return fmt::format("i{}", static_cast<int64_t>(number));
    return fmt::format("f{}", number);
  }
  return InvalidArgument(
      fmt::format("a {} cannot be the key of a dict", TypeName(key)));
}

const Value* Dict::Find(const Value& key) const {
  const auto canonical = CanonicalKey(key);
  if (!canonical.ok()) return nullptr;
  const auto it = index_.find(*canonical);
  return it == index_.end() ? nullptr : &entries_[it->second].second;
}

const Value* Dict::Find(std::string_view key) const {
  const auto it = index_.find(StringKey(key));
  return it == index_.end() ? nullptr : &entries_[it->second].second;
}

Status Dict::Set(const Value& key, Value value) {
  ASSIGN_OR_RETURN(std::string canonical, CanonicalKey(key));
  Insert(std::move(canonical), key, std::move(value));
  return Status();
}

void Dict::Set(std::string_view key, Value value) {
  Insert(StringKey(key), Value::String(std::string(key)), std::move(value));
}

void Dict::Insert(std::string canonical, const Value& key, Value value) {
  depth_ = std::max(depth_, value.depth() + 1);
  const auto [it, added] =
      index_.try_emplace(std::move(canonical), entries_.size());
  if (added) {
    entries_.emplace_back(key, std::move(value));
  } else {
    entries_[it->second].second = std::move(value);
  }
}

namespace {

Status TooDeep() {
  return Status(Code::kResourceExhausted, "values are nested too deeply");
}

}  // namespace

Result<Value> MakeList(Kind kind, std::vector<Value> items, std::string label) {
  auto list = std::make_shared<List>();
  for (const Value& item : items) {
    list->depth = std::max(list->depth, item.depth() + 1);
  }
  if (list->depth > kMaxValueDepth) return TooDeep();
  list->items = std::move(items);
  list->label = std::move(label);
  return Value::FromList(kind, std::move(list));
}

Result<Value> MakeDict(Dict dict) {
  if (dict.depth() > kMaxValueDepth) return TooDeep();
  return Value::FromDict(std::make_shared<const Dict>(std::move(dict)));
}

std::string_view TypeName(const Value& value) {
  switch (value.kind()) {
    case Kind::kUndefined:
      return "Undefined";
    case Kind::kNone:
      return "NoneType";
    case Kind::kBool:
      return "bool";
    case Kind::kInt:
      return "int";
    case Kind::kFloat:
      return "float";
    case Kind::kString:
      return "str";
    case Kind::kList:
      return "list";
    case Kind::kTuple:
      return "tuple";
    case Kind::kRange:
      return "range";
    case Kind::kView:
      return "view";
    case Kind::kGenerator:
      return "generator";
    case Kind::kDict:
      return "dict";
    case Kind::kNamespace:
      return "namespace";
    case Kind::kMacro:
      return "macro";
    case Kind::kLoop:
      return "loop";
    case Kind::kFunction:
      return "function";
    case Kind::kMethod:
      return "method";
  }
  return "value";
}

}  // namespace muster::jinja

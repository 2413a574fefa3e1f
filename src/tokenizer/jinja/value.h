// The values that a template computes with: Python's, as far as chat templates
// meet them. Immutable but for namespaces, so that sharing is safe and no
// cycle of owners can arise. No value leads to anything of the host program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "tokenizer/jinja/text.h"

namespace muster::jinja {

// Lists in lists in lists: deeper values are refused, so that printing,
// comparing and destroying them may recurse.
inline constexpr int kMaxValueDepth = 100;

enum class Kind {
  kUndefined,
  kNone,
  kBool,
  kInt,
  kFloat,
  kString,
  kList,
  kTuple,
  kRange,
  kView,       // dict.keys() and its like: has a length, no index
  kGenerator,  // what `map` and its like return: no length, no index
  kDict,
  kNamespace,
  kMacro,
  kLoop,
  kFunction,
  kMethod,  // a method that is looked at, not called
};

class Value;
struct List;
class Dict;

// Things with identity. The interpreter of one rendering owns them all, which
// is what makes it safe for a namespace to contain itself.
class Object {
 public:
  virtual ~Object() = default;
};

// A plain value: cheap to copy. Thread-safe to read.
class Value {
 public:
  Value();  // undefined
  Value(const Value& other);
  Value& operator=(const Value& other);
  Value(Value&& other) noexcept;
  Value& operator=(Value&& other) noexcept;
  ~Value();
  static Value Undefined(std::string why);
  static Value None();
  static Value Bool(bool value);
  static Value Int(int64_t value);
  static Value Float(double value);
  static Value String(Text text, bool safe = false);
  static Value String(std::string template_bytes);
  static Value FromObject(Kind kind, Object* object);
  static Value FromList(Kind kind, std::shared_ptr<const List> list);
  static Value FromDict(std::shared_ptr<const Dict> dict);

  Kind kind() const { return kind_; }
  bool Is(Kind kind) const { return kind_ == kind; }
  bool IsUndefined() const { return kind_ == Kind::kUndefined; }
  bool IsNone() const { return kind_ == Kind::kNone; }
  bool IsString() const { return kind_ == Kind::kString; }
  bool IsDict() const { return kind_ == Kind::kDict; }
  // Holds a List: list, tuple, range, view or generator.
  bool IsListLike() const;
  // A bool counts as the number that Python takes it for.
  bool IsIntegral() const {
    return kind_ == Kind::kInt || kind_ == Kind::kBool;
  }
  bool IsNumber() const { return IsIntegral() || kind_ == Kind::kFloat; }

  // REQUIRES of all getters: the kind fits.
  bool boolean() const { return std::get<int64_t>(data_) != 0; }
  int64_t integer() const { return std::get<int64_t>(data_); }
  double number() const;  // of any IsNumber()
  const Text& text() const { return *std::get<TextPtr>(data_); }
  bool safe() const { return safe_; }  // marked by the filter `safe`
  const List& list() const { return *std::get<ListPtr>(data_); }
  const Dict& dict() const { return *std::get<DictPtr>(data_); }
  Object* object() const { return std::get<Object*>(data_); }
  // Why an undefined value is undefined; empty when nobody said.
  std::string_view undefined_reason() const;

  int depth() const;  // 0: holds no other value

 private:
  using TextPtr = std::shared_ptr<const Text>;
  using ListPtr = std::shared_ptr<const List>;
  using DictPtr = std::shared_ptr<const Dict>;

  Kind kind_ = Kind::kUndefined;
  bool safe_ = false;
  std::variant<std::monostate, int64_t, double, TextPtr, ListPtr, DictPtr,
               Object*>
      data_;
};

struct List {
  std::vector<Value> items;
  std::string label;  // of a range, view, group or method: how it prints
  int depth = 1;
  mutable bool consumed = false;  // of a generator; one rendering, one thread
};

// Ordered by first insertion, as in Python.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  const std::vector<Entry>& entries() const { return entries_; }
  size_t size() const { return entries_.size(); }
  int depth() const { return depth_; }

  // nullptr: absent, or a key that no dict can hold.
  const Value* Find(const Value& key) const;
  const Value* Find(std::string_view key) const;

  // Replaces the value of an equal key and keeps its place. Fails when `key`
  // is a list, dict or the like.
  Status Set(const Value& key, Value value);
  void Set(std::string_view key, Value value);

 private:
  void Insert(std::string canonical, const Value& key, Value value);

  std::vector<Entry> entries_;
  std::unordered_map<std::string, size_t> index_;  // canonical key to place
  int depth_ = 1;
};

// Equal keys have equal canonical forms. Fails for what Python cannot hash.
Result<std::string> CanonicalKey(const Value& key);

// Fail when the result would be deeper than kMaxValueDepth.
Result<Value> MakeList(Kind kind, std::vector<Value> items,
                       std::string label = "");
Result<Value> MakeDict(Dict dict);

// Who wrote the strings of a JSON text.
enum class Origin { kTemplate, kInput };

// Strings, member names included, are marked with `origin`. Fails on bad JSON,
// bad UTF-8, integers outside int64 and nesting beyond kMaxValueDepth.
Result<Value> ValueFromJson(std::string_view json, Origin origin);

// How Python calls the value's type: 'str', 'list', ...
std::string_view TypeName(const Value& value);

}  // namespace muster::jinja

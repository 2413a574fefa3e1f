#include "tokenizer/jinja/sorting.h"

#include <algorithm>
#include <numeric>

#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/text_ops.h"

namespace muster::jinja {
namespace {

Result<Value> IgnoreCase(Limits& limits, Value key) {
  if (!key.IsString()) return key;
  RETURN_IF_ERROR(limits.CheckText(key.text().size()));
  return Value::String(Lower(key.text()));
}

Result<Value> KeyOf(Interpreter& in, const Value& item, const Value& path,
                    bool case_sensitive) {
  Value key = item;
  if (!path.IsNone()) {
    ASSIGN_OR_RETURN(key, in.GetPath(item, path));
  }
  return case_sensitive ? key : IgnoreCase(in.limits(), std::move(key));
}

// The paths of "a,b.c".
Result<std::vector<Value>> Paths(Limits& limits, const Value* attribute) {
  if (attribute == nullptr) return std::vector<Value>{Value::None()};
  if (!attribute->IsString()) return std::vector<Value>{*attribute};
  ASSIGN_OR_RETURN(const auto parts,
                   Split(limits, attribute->text(), ",", -1, false));
  std::vector<Value> paths;
  paths.reserve(parts.size());
  for (const Text& part : parts) paths.push_back(Value::String(part));
  return paths;
}

}  // namespace

Result<std::vector<Value>> SortKeys(Interpreter& in,
                                    const std::vector<Value>& items,
                                    const Value* attribute,
                                    bool case_sensitive) {
  ASSIGN_OR_RETURN(const auto paths, Paths(in.limits(), attribute));
  RETURN_IF_ERROR(in.limits().AllocateItems(items.size() * paths.size()));
  std::vector<Value> keys;
  for (const Value& item : items) {
    std::vector<Value> parts;
    for (const Value& path : paths) {
      ASSIGN_OR_RETURN(Value part, KeyOf(in, item, path, case_sensitive));
      parts.push_back(std::move(part));
    }
    if (parts.size() == 1) {
      keys.push_back(std::move(parts[0]));
      continue;
    }
    ASSIGN_OR_RETURN(Value key, MakeList(Kind::kTuple, std::move(parts)));
    keys.push_back(std::move(key));
  }
  return keys;
}

Status SortByKeys(Limits& limits, const std::vector<Value>& keys, bool reverse,
                  std::vector<Value>* items) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // A failed comparison calls all further keys equal; the order is then moot.
  Status status;
  const auto less = [&](size_t a, size_t b) {
    if (!status.ok()) return false;
    const auto result = reverse ? Less(limits, keys[b], keys[a])
                                : Less(limits, keys[a], keys[b]);
    if (!result.ok()) status = result.status();
    return result.ok() && *result;
  };
  std::stable_sort(order.begin(), order.end(), less);
  RETURN_IF_ERROR(status);
  std::vector<Value> sorted;
  sorted.reserve(order.size());
  for (const size_t place : order) sorted.push_back((*items)[place]);
  *items = std::move(sorted);
  return Status();
}

Result<std::vector<Value>> DictItems(Limits& limits, const Dict& dict) {
  RETURN_IF_ERROR(limits.AllocateItems(4 * dict.size()));
  std::vector<Value> items;
  for (const auto& [key, value] : dict.entries()) {
    ASSIGN_OR_RETURN(Value pair, MakeList(Kind::kTuple, {key, value}));
    items.push_back(std::move(pair));
  }
  return items;
}

}  // namespace muster::jinja

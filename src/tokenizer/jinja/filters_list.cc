// Filters that reorder, cut and join lists and dicts.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/printing.h"
#include "tokenizer/jinja/sorting.h"

namespace muster::jinja {
namespace {

Result<Value> FilterDefault(Interpreter&, const Value& value,
                            const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"default_value", "boolean"}));
  const bool replaced =
      value.IsUndefined() || (BoolOr(bound[1], false) && !Truthy(value));
  if (!replaced) return value;
  return bound[0] == nullptr ? Value::String("") : *bound[0];
}

Result<Value> FilterLength(Interpreter& in, const Value& value,
                           const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  ASSIGN_OR_RETURN(const int64_t length, Length(in.limits(), value));
  return Value::Int(length);
}

Result<Value> FilterFirst(Interpreter& in, const Value& value,
                          const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  ASSIGN_OR_RETURN(const auto items, Iterate(in.limits(), value));
  if (!items.empty()) return items.front();
  return Value::Undefined("No first item, sequence was empty.");
}

Result<Value> FilterLast(Interpreter& in, const Value& value,
                         const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  if (value.Is(Kind::kGenerator)) {
    return InvalidArgument("a generator has no last item");
  }
  ASSIGN_OR_RETURN(const auto items, Iterate(in.limits(), value));
  if (!items.empty()) return items.back();
  return Value::Undefined("No last item, sequence was empty.");
}

Result<Value> FilterJoin(Interpreter& in, const Value& value,
                         const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"d", "attribute"}));
  Text separator;
  if (bound[0] != nullptr) {
    ASSIGN_OR_RETURN(separator, ToText(in.limits(), *bound[0]));
  }
  ASSIGN_OR_RETURN(const auto items, Iterate(in.limits(), value));
  Text out;
  for (size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (bound[1] != nullptr && !bound[1]->IsNone()) {
      ASSIGN_OR_RETURN(item, in.GetPath(item, *bound[1]));
    }
    if (i > 0) out.Append(separator);
    RETURN_IF_ERROR(Print(in.limits(), item, &out));
  }
  RETURN_IF_ERROR(in.limits().CheckText(out.size()));
  return Value::String(std::move(out));
}

Result<Value> FilterList(Interpreter& in, const Value& value,
                         const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  ASSIGN_OR_RETURN(auto items, Iterate(in.limits(), value));
  return MakeList(Kind::kList, std::move(items));
}

Result<Value> FilterReverse(Interpreter& in, const Value& value,
                            const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  if (value.IsString()) {
    return Slice(in.limits(), value, Value::None(), Value::None(),
                 Value::Int(-1));
  }
  ASSIGN_OR_RETURN(auto items, Iterate(in.limits(), value));
  std::reverse(items.begin(), items.end());
  return MakeList(Kind::kGenerator, std::move(items));
}

Result<Value> FilterItems(Interpreter& in, const Value& value,
                          const Args& args) {
  RETURN_IF_ERROR(Bind(args, {}).status());
  if (value.IsUndefined()) return MakeList(Kind::kGenerator, {});
  if (!value.IsDict()) {
    return InvalidArgument(
        fmt::format("items: expected a dict, found {}", TypeName(value)));
  }
  ASSIGN_OR_RETURN(auto items, DictItems(in.limits(), value.dict()));
  return MakeList(Kind::kGenerator, std::move(items));
}

Result<Value> FilterSort(Interpreter& in, const Value& value,
                         const Args& args) {
  ASSIGN_OR_RETURN(const auto bound,
                   Bind(args, {"reverse", "case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(auto items, Iterate(in.limits(), value));
  ASSIGN_OR_RETURN(const auto keys,
                   SortKeys(in, items, bound[2], BoolOr(bound[1], false)));
  RETURN_IF_ERROR(
      SortByKeys(in.limits(), keys, BoolOr(bound[0], false), &items));
  return MakeList(Kind::kList, std::move(items));
}

Result<Value> FilterDictSort(Interpreter& in, const Value& value,
                             const Args& args) {
  ASSIGN_OR_RETURN(const auto bound,
                   Bind(args, {"case_sensitive", "by", "reverse"}));
  if (!value.IsDict()) {
    return InvalidArgument(
        fmt::format("dictsort: expected a dict, found {}", TypeName(value)));
  }
  int64_t part = 0;
  if (bound[1] != nullptr) {
    ASSIGN_OR_RETURN(const Text by, TextArg(bound[1]));
    if (by.view() != "key" && by.view() != "value") {
      return InvalidArgument("dictsort: sorts by 'key' or 'value'");
    }
    part = by.view() == "value" ? 1 : 0;
  }
  ASSIGN_OR_RETURN(auto items, DictItems(in.limits(), value.dict()));
  const Value path = Value::Int(part);
  ASSIGN_OR_RETURN(const auto keys,
                   SortKeys(in, items, &path, BoolOr(bound[0], false)));
  RETURN_IF_ERROR(
      SortByKeys(in.limits(), keys, BoolOr(bound[2], false), &items));
  return MakeList(Kind::kList, std::move(items));
}

Result<Value> FilterUnique(Interpreter& in, const Value& value,
                           const Args& args) {
  ASSIGN_OR_RETURN(const auto bound,
                   Bind(args, {"case_sensitive", "attribute"}));
  ASSIGN_OR_RETURN(const auto items, Iterate(in.limits(), value));
  ASSIGN_OR_RETURN(const auto keys,
                   SortKeys(in, items, bound[1], BoolOr(bound[0], false)));
  std::unordered_set<std::string> seen;
  std::vector<Value> unique;
  for (size_t i = 0; i < items.size(); ++i) {
    ASSIGN_OR_RETURN(std::string key, CanonicalKey(keys[i]));
    RETURN_IF_ERROR(in.limits().Allocate(key.size()));
    if (seen.insert(std::move(key)).second) unique.push_back(items[i]);
  }
  return MakeList(Kind::kGenerator, std::move(unique));
}

// Pieces of equal length, the last filled up; nullptr: not filled.
Result<Value> FilterBatch(Interpreter& in, const Value& value,
                          const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"linecount", "fill_with"}, 1));
  ASSIGN_OR_RETURN(const int64_t count, IntegerArg(*bound[0], "linecount"));
  ASSIGN_OR_RETURN(const auto items, Iterate(in.limits(), value));
  if (count < 1 || count > kMaxRange) {
    return InvalidArgument("batch: the count is out of range");
  }
  const auto length = static_cast<size_t>(count);
  std::vector<Value> batches;
  for (size_t begin = 0; begin < items.size(); begin += length) {
    const size_t end = std::min(begin + length, items.size());
    std::vector<Value> batch(items.begin() + static_cast<ptrdiff_t>(begin),
                             items.begin() + static_cast<ptrdiff_t>(end));
    if (bound[1] != nullptr && !bound[1]->IsNone()) {
      batch.resize(length, *bound[1]);
    }
    RETURN_IF_ERROR(in.limits().AllocateItems(batch.size() + 1));
    ASSIGN_OR_RETURN(Value list, MakeList(Kind::kList, std::move(batch)));
    batches.push_back(std::move(list));
  }
  return MakeList(Kind::kGenerator, std::move(batches));
}

// A number of columns of about equal length.
Result<Value> FilterSlice(Interpreter& in, const Value& value,
                          const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"slices", "fill_with"}, 1));
  ASSIGN_OR_RETURN(const int64_t slices, IntegerArg(*bound[0], "slices"));
  ASSIGN_OR_RETURN(const auto items, Iterate(in.limits(), value));
  if (slices < 1 || slices > kMaxRange) {
    return InvalidArgument("slice: the count is out of range");
  }
  const auto count = static_cast<size_t>(slices);
  const size_t longer = items.size() % count;  // slices with one more item
  auto next = items.begin();
  std::vector<Value> columns;
  for (size_t i = 0; i < count; ++i) {
    const size_t length = items.size() / count + (i < longer ? 1 : 0);
    std::vector<Value> column(next, next + static_cast<ptrdiff_t>(length));
    next += static_cast<ptrdiff_t>(length);
    const bool filled =
        bound[1] != nullptr && !bound[1]->IsNone() && i >= longer;
    if (filled) column.push_back(*bound[1]);
    RETURN_IF_ERROR(in.limits().AllocateItems(column.size() + 1));
    ASSIGN_OR_RETURN(Value list, MakeList(Kind::kList, std::move(column)));
    columns.push_back(std::move(list));
  }
  return MakeList(Kind::kGenerator, std::move(columns));
}

constexpr Filter kFilters[] = {
    {"batch", FilterBatch},       {"count", FilterLength},
    {"d", FilterDefault},         {"default", FilterDefault},
    {"dictsort", FilterDictSort}, {"first", FilterFirst},
    {"items", FilterItems},       {"join", FilterJoin},
    {"last", FilterLast},         {"length", FilterLength},
    {"list", FilterList},         {"reverse", FilterReverse},
    {"slice", FilterSlice},       {"sort", FilterSort},
    {"unique", FilterUnique},
};

}  // namespace

std::span<const Filter> ListFilters() { return kFilters; }

}  // namespace muster::jinja

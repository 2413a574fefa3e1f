// map, select and their kin, and grouping.
#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/operators.h"
#include "tokenizer/jinja/sorting.h"

namespace muster::jinja {
namespace {

// The arguments behind the first `count` positional ones.
Args Rest(const Args& args, size_t count) {
  Args rest{.positional = {}, .named = args.named};
  for (size_t i = count; i < args.positional.size(); ++i) {
    rest.positional.push_back(args.positional[i]);
  }
  return rest;
}

Result<Value> MapAttribute(Interpreter& in, const Value& value,
                           const Args& args) {
  ASSIGN_OR_RETURN(const auto bound, Bind(args, {"attribute", "default"}, 1));
  ASSIGN_OR_RETURN(auto items, Iterate(in.limits(), value));
  for (Value& item : items) {
    ASSIGN_OR_RETURN(item, in.GetPath(item, *bound[0]));
    const bool replaced =
        item.IsUndefined() && bound[1] != nullptr && !bound[1]->IsNone();
    if (replaced) item = *bound[1];
  }
  return MakeList(Kind::kGenerator, std::move(items));
}

Result<Value> FilterMap(Interpreter& in, const Value& value, const Args& args) {
  if (!Truthy(value)) return MakeList(Kind::kGenerator, {});
  if (args.positional.empty()) return MapAttribute(in, value, args);
  ASSIGN_OR_RETURN(const Text name, TextArg(&args.positional[0]));
  const Args rest = Rest(args, 1);
  ASSIGN_OR_RETURN(auto items, Iterate(in.limits(), value));
  for (Value& item : items) {
    ASSIGN_OR_RETURN(item, in.CallFilter(name.view(), item, rest));
  }
  return MakeList(Kind::kGenerator, std::move(items));
}

struct SelectOptions {
  bool by_attribute = false;
  bool keep_if = true;
};

Result<Value> SelectBy(Interpreter& in, const Value& value, const Args& args,
                       const SelectOptions& options) {
  const size_t skipped = options.by_attribute ? 1 : 0;
  if (!Truthy(value)) return MakeList(Kind::kGenerator, {});
  if (args.positional.size() < skipped) {
    return InvalidArgument("the name of an attribute is missing");
  }
  Text test;
  const bool has_test = args.positional.size() > skipped;
  if (has_test) {
    ASSIGN_OR_RETURN(test, TextArg(&args.positional[skipped]));
  }
  const Args rest = Rest(args, skipped + 1);
  ASSIGN_OR_RETURN(const auto items, Iterate(in.limits(), value));
  std::vector<Value> selected;
  for (const Value& item : items) {
    Value tested = item;
    if (options.by_attribute) {
      ASSIGN_OR_RETURN(tested, in.GetPath(item, args.positional[0]));
    }
    bool holds = Truthy(tested);
    if (has_test) {
      ASSIGN_OR_RETURN(holds, in.CallTest(test.view(), tested, rest));
    }
    if (holds == options.keep_if) selected.push_back(item);
  }
  return MakeList(Kind::kGenerator, std::move(selected));
}

Result<Value> FilterSelect(Interpreter& in, const Value& v, const Args& args) {
  return SelectBy(in, v, args, {.by_attribute = false, .keep_if = true});
}
Result<Value> FilterReject(Interpreter& in, const Value& v, const Args& args) {
  return SelectBy(in, v, args, {.by_attribute = false, .keep_if = false});
}
Result<Value> FilterSelectAttr(Interpreter& in, const Value& v,
                               const Args& args) {
  return SelectBy(in, v, args, {.by_attribute = true, .keep_if = true});
}
Result<Value> FilterRejectAttr(Interpreter& in, const Value& v,
                               const Args& args) {
  return SelectBy(in, v, args, {.by_attribute = true, .keep_if = false});
}

Result<Value> MakeGroup(Interpreter& in, const Value& key,
                        std::vector<Value> members) {
  RETURN_IF_ERROR(in.limits().AllocateItems(members.size() + 2));
  ASSIGN_OR_RETURN(Value list, MakeList(Kind::kList, std::move(members)));
  return MakeList(Kind::kTuple, {key, std::move(list)}, "group");
}

Result<Value> FilterGroupBy(Interpreter& in, const Value& value,
                            const Args& args) {
  ASSIGN_OR_RETURN(const auto bound,
                   Bind(args, {"attribute", "default", "case_sensitive"}, 1));
  if (bound[1] != nullptr && !bound[1]->IsNone()) {
    return Unsupported("groupby: 'default' is not supported");
  }
  const bool case_sensitive = BoolOr(bound[2], false);
  ASSIGN_OR_RETURN(auto items, Iterate(in.limits(), value));
  ASSIGN_OR_RETURN(auto keys, SortKeys(in, items, bound[0], case_sensitive));
  std::vector<Value> sorted_keys = keys;
  RETURN_IF_ERROR(SortByKeys(in.limits(), keys, false, &items));
  RETURN_IF_ERROR(SortByKeys(in.limits(), keys, false, &sorted_keys));
  std::vector<Value> groups;
  for (size_t begin = 0; begin < items.size();) {
    std::vector<Value> members;
    size_t end = begin;
    for (; end < items.size(); ++end) {
      ASSIGN_OR_RETURN(const bool same, Equals(in.limits(), sorted_keys[begin],
                                               sorted_keys[end]));
      if (!same) break;
      members.push_back(items[end]);
    }
    if (end == begin) members.push_back(items[end++]);  // a key that is NaN
    ASSIGN_OR_RETURN(const Value key, in.GetPath(members[0], *bound[0]));
    ASSIGN_OR_RETURN(Value group, MakeGroup(in, key, std::move(members)));
    groups.push_back(std::move(group));
    begin = end;
  }
  return MakeList(Kind::kList, std::move(groups));
}

constexpr Filter kFilters[] = {
    {"groupby", FilterGroupBy}, {"map", FilterMap},
    {"reject", FilterReject},   {"rejectattr", FilterRejectAttr},
    {"select", FilterSelect},   {"selectattr", FilterSelectAttr},
};

}  // namespace

std::span<const Filter> SelectFilters() { return kFilters; }

}  // namespace muster::jinja

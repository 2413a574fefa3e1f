// Arguments of filters, tests, methods and functions.
#include <fmt/format.h>

#include <algorithm>

#include "tokenizer/jinja/builtins.h"
#include "tokenizer/jinja/operators.h"

namespace muster::jinja {

Result<std::vector<const Value*>> Bind(
    const Args& args, std::initializer_list<std::string_view> names,
    size_t num_required) {
  if (args.positional.size() > names.size()) {
    return InvalidArgument(
        fmt::format("found {} arguments, expected at most {}",
                    args.positional.size(), names.size()));
  }
  std::vector<const Value*> bound(names.size(), nullptr);
  for (size_t i = 0; i < args.positional.size(); ++i) {
    bound[i] = &args.positional[i];
  }
  for (const auto& [name, value] : args.named) {
    const auto it = std::find(names.begin(), names.end(), name);
    if (it == names.end()) {
      return InvalidArgument(fmt::format("unknown argument '{}'", name));
    }
    const auto place = static_cast<size_t>(it - names.begin());
    if (bound[place] != nullptr) {
      return InvalidArgument(fmt::format("argument '{}' is given twice", name));
    }
    bound[place] = &value;
  }
  for (size_t i = 0; i < num_required; ++i) {
    if (bound[i] == nullptr) {
      return InvalidArgument(
          fmt::format("argument '{}' is missing", *(names.begin() + i)));
    }
  }
  return bound;
}

Result<int64_t> IntOr(const Value* value, int64_t otherwise) {
  return value == nullptr ? otherwise : IntegerArg(*value, "argument");
}

bool BoolOr(const Value* value, bool otherwise) {
  return value == nullptr ? otherwise : Truthy(*value);
}

Result<Text> TextArg(const Value* value) {
  if (value != nullptr && value->IsString()) return value->text();
  return InvalidArgument(
      fmt::format("expected a string as argument, found {}",
                  value == nullptr ? "nothing" : TypeName(*value)));
}

namespace {

template <class Entry>
const Entry* FindIn(std::span<const Entry> table, std::string_view name) {
  for (const Entry& entry : table) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

}  // namespace

const Filter* FindFilter(std::string_view name) {
  for (const auto table :
       {TextFilters(), ListFilters(), SelectFilters(), NumberFilters()}) {
    const Filter* filter = FindIn(table, name);
    if (filter != nullptr) return filter;
  }
  return nullptr;
}

TextMethod FindTextMethod(std::string_view name) {
  for (const auto table : {TextMakingMethods(), TextSearchMethods()}) {
    const NamedTextMethod* method = FindIn(table, name);
    if (method != nullptr) return method->call;
  }
  return nullptr;
}

const Test* FindTest(std::string_view name) { return FindIn(Tests(), name); }

}  // namespace muster::jinja

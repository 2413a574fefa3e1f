// What Python's operators and len(), iter(), bool() do with values. All fail
// with kInvalidArgument where Python raises an exception.
#pragma once

#include <vector>

#include "base/status.h"
#include "tokenizer/jinja/ast.h"
#include "tokenizer/jinja/limits.h"
#include "tokenizer/jinja/value.h"

namespace muster::jinja {

bool Truthy(const Value& value);
Result<bool> Equals(Limits& limits, const Value& a, const Value& b);
Result<bool> Less(Limits& limits, const Value& a, const Value& b);
Result<bool> Compare(Limits& limits, CompareOp op, const Value& a,
                     const Value& b);
Result<bool> Contains(Limits& limits, const Value& container,
                      const Value& item);

Result<Value> Apply(Limits& limits, BinaryOp op, const Value& a,
                    const Value& b);
Result<Value> Add(Limits& limits, const Value& a, const Value& b);
Result<Value> Negate(const Value& value);

Result<int64_t> Length(Limits& limits, const Value& value);
// The items of a list, the characters of a string, the keys of a dict, ...;
// a generator is used up by it.
Result<std::vector<Value>> Iterate(Limits& limits, const Value& value);

// value[start:stop:step]; none stands for a part that is left out.
Result<Value> Slice(Limits& limits, const Value& value, const Value& start,
                    const Value& stop, const Value& step);
// value[index]; an undefined value when there is no such item.
Result<Value> ItemAt(Limits& limits, const Value& value, int64_t index);

// `value` as an integer argument called `what`.
Result<int64_t> IntegerArg(const Value& value, std::string_view what);
// The reason an operation on an undefined value fails; ok for all others.
Status CheckDefined(const Value& value);

}  // namespace muster::jinja

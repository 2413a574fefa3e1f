// What the filters that order or group things share.
#pragma once

#include <vector>

#include "base/status.h"
#include "tokenizer/jinja/interpreter.h"

namespace muster::jinja {

// What each item is ordered by: itself, or what `attribute` (may be nullptr or
// none; a path, or several with commas) leads to. Without `case_sensitive`,
// strings in lower case.
Result<std::vector<Value>> SortKeys(Interpreter& interpreter,
                                    const std::vector<Value>& items,
                                    const Value* attribute,
                                    bool case_sensitive);

// Stable. Fails when two keys have no order.
Status SortByKeys(Limits& limits, const std::vector<Value>& keys, bool reverse,
                  std::vector<Value>* items);

// (key, value) tuples.
Result<std::vector<Value>> DictItems(Limits& limits, const Dict& dict);

}  // namespace muster::jinja

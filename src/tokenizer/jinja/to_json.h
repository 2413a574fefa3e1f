// Values to JSON text, as Python's json.dumps() writes them.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "tokenizer/jinja/limits.h"
#include "tokenizer/jinja/value.h"

namespace muster::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // of one level; nullopt: one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

// Fails on what JSON has no form for.
Result<Text> ToJson(Limits& limits, const Value& value, const JsonStyle& style);

}  // namespace muster::jinja

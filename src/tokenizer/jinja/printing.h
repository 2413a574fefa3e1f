// Values to text, as Python's str() and repr() print them.
#pragma once

#include <string>

#include "base/status.h"
#include "tokenizer/jinja/limits.h"
#include "tokenizer/jinja/value.h"

namespace muster::jinja {

// str(value), appended to *out. Undefined prints nothing.
Status Print(Limits& limits, const Value& value, Text* out);
// repr(value), appended to *out.
Status PrintRepr(Limits& limits, const Value& value, Text* out);
Result<Text> ToText(Limits& limits, const Value& value);

// The shortest digits that read back as the same number, in Python's notation.
std::string FloatRepr(double value);

}  // namespace muster::jinja

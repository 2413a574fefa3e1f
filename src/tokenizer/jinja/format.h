// Python's two ways to fill a string: '%s' % x and '{}'.format(x).
#pragma once

#include "base/status.h"
#include "tokenizer/jinja/limits.h"
#include "tokenizer/jinja/objects.h"

namespace muster::jinja {

// `format` % `args`; a tuple holds several arguments, a dict named ones.
Result<Value> PercentFormat(Limits& limits, const Value& format,
                            const Value& args);

// format.format(*args, **kwargs). Fields may be empty, numbers or names and
// may end in !s or !r; attributes and format specifications are kUnsupported.
Result<Value> BraceFormat(Limits& limits, const Text& format, const Args& args);

}  // namespace muster::jinja

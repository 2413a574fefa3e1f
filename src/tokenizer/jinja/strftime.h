// Dates as text, as Python's strftime writes them in the C locale.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::jinja {

// In UTC. Fails with kUnsupported on a code that is not known, and on a format
// of more than 1000 bytes.
Result<std::string> FormatTime(std::string_view format,
                               std::chrono::sys_seconds time);

}  // namespace muster::jinja

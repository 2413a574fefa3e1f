// The --trace flag: a timeline of what a command did, in a file.
#pragma once

#include <functional>
#include <string>

#include "base/status.h"

namespace muster::cli {

// Calls `run` and, unless `path` is empty, writes what it did to that file (see
// telemetry/trace.h); also when `run` failed, whose Status is then returned.
// Fails with kIoError when the file cannot be written.
Status RunTraced(const std::string& path, const std::function<Status()>& run);

}  // namespace muster::cli

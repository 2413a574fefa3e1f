#include "cli/trace_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "telemetry/trace.h"

namespace muster::cli {

Status RunTraced(const std::string& path, const std::function<Status()>& run) {
  if (path.empty()) return run();
  // Opened first: who mistypes a folder need not wait for an answer.
  std::ofstream file(path);
  if (!file) {
    return IoError(fmt::format("cannot write the trace to {}: {}", path,
                               std::strerror(errno)));
  }
  const telemetry::Trace trace;
  const Status status = run();
  trace.WriteJson(file);
  file.close();
  if (!status.ok()) return status;
  if (!file) return IoError(fmt::format("could not write all of {}", path));
  return {};
}

}  // namespace muster::cli

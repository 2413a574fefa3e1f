// What ProbeDisk found, remembered per machine and device (io/user_cache.h).
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/status.h"
#include "io/disk_probe.h"

namespace muster::io {

// What is remembered of the disk behind `path`, a file or a folder; else it is
// probed and remembered. What is remembered wrongly is probed anew, what cannot
// be remembered is probed each time. Fails as ProbeDisk does.
Result<DiskProbe> KnownDisk(const std::string& path);

// Probes in any case, and remembers.
Result<DiskProbe> ProbeAndRememberDisk(const std::string& path);

nlohmann::json DiskProbeToJson(const DiskProbe& probe);
// nullopt: it makes no sense.
std::optional<DiskProbe> DiskProbeFromJson(const nlohmann::json& entry);

}  // namespace muster::io

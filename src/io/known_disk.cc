#include "io/known_disk.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "io/user_cache.h"

namespace muster::io {
namespace {

using nlohmann::json;

constexpr char kFileName[] = "disks.json";
constexpr size_t kMaxDepth = 1024;

Result<std::string> DiskKey(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    const Code code = errno == ENOENT ? Code::kNotFound : Code::kIoError;
    return Status(code, fmt::format("{}: {}", path, std::strerror(errno)));
  }
  return fmt::format("{}, device {}:{}", MachineKey(), major(info.st_dev),
                     minor(info.st_dev));
}

}  // namespace

Result<DiskProbe> KnownDisk(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string key, DiskKey(path));
  if (const auto entry = LoadFromUserCache(kFileName, key);
      entry.ok() && entry->has_value()) {
    if (auto probe = DiskProbeFromJson(**entry)) return *probe;
  }
  return ProbeAndRememberDisk(path);
}

Result<DiskProbe> ProbeAndRememberDisk(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string key, DiskKey(path));
  ASSIGN_OR_RETURN(const DiskProbe probe, ProbeDisk(path));
  // A read-only home costs a second at the next start, no more.
  (void)SaveToUserCache(kFileName, key, DiskProbeToJson(probe));
  return probe;
}

json DiskProbeToJson(const DiskProbe& probe) {
  return {{"direct", probe.best.direct},
          {"depth", probe.best.depth},
          {"bytes_per_second", probe.best.bytes_per_second},
          {"engine", probe.engine},
          {"why_not_direct", probe.why_not_direct}};
}

std::optional<DiskProbe> DiskProbeFromJson(const json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const auto find = [&](const char* key) { return entry.value(key, json()); };
  const json direct = find("direct");
  const json depth = find("depth");
  const json rate = find("bytes_per_second");
  const json engine = find("engine");
  const json why_not = find("why_not_direct");
  if (!direct.is_boolean() || !depth.is_number_unsigned() ||
      !rate.is_number() || !engine.is_string() || !why_not.is_string()) {
    return std::nullopt;
  }
  const DiskProbe probe{.best = {.direct = direct.get<bool>(),
                                 .depth = depth.get<size_t>(),
                                 .bytes_per_second = rate.get<double>()},
                        .engine = engine.get<std::string>(),
                        .why_not_direct = why_not.get<std::string>()};
  if (probe.best.depth < 1 || probe.best.depth > kMaxDepth ||
      !(probe.best.bytes_per_second > 0)) {
    return std::nullopt;
  }
  return probe;
}

}  // namespace muster::io

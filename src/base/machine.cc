#include "base/machine.h"

#include <sys/resource.h>

#include <algorithm>
#include <sstream>

#include "base/cgroup.h"

namespace muster {
namespace {

// A whole number at the start of a file; nullopt for "max" or nothing.
std::optional<uint64_t> ReadNumber(const std::string& path) {
  const auto text = ReadWholeFile(path);
  if (!text) return std::nullopt;
  uint64_t number = 0;
  if (!(std::istringstream(*text) >> number)) return std::nullopt;
  return number;
}

// The number behind `key` in lines of "key number" or "key: number kB".
std::optional<uint64_t> FindNumber(const std::string& text,
                                   const std::string& key) {
  std::istringstream lines(text);
  for (std::string word; lines >> word;) {
    if (word != key) continue;
    uint64_t number = 0;
    if (lines >> number) return number;
    return std::nullopt;
  }
  return std::nullopt;
}

void AddGroupLimits(MemoryInfo& info) {
  const auto group = FindCgroup("memory");
  if (!group) return;
  const char* limit_file =
      group->is_v2 ? "/memory.max" : "/memory.limit_in_bytes";
  const char* usage_file =
      group->is_v2 ? "/memory.current" : "/memory.usage_in_bytes";
  // A parent may be tighter than the group itself.
  for (const std::string& folder : group->folders) {
    const auto limit = ReadNumber(folder + limit_file);
    // v1 writes "no limit" as a huge number.
    if (!limit || *limit >= info.total_bytes) continue;
    if (info.cgroup_limit_bytes && *info.cgroup_limit_bytes <= *limit) continue;
    info.cgroup_limit_bytes = *limit;
    const uint64_t usage = ReadNumber(folder + usage_file).value_or(0);
    const auto stat = ReadWholeFile(folder + "/memory.stat").value_or("");
    const uint64_t reclaimable =
        FindNumber(stat, group->is_v2 ? "inactive_file" : "total_inactive_file")
            .value_or(0) +
        FindNumber(stat, group->is_v2 ? "active_file" : "total_active_file")
            .value_or(0);
    info.cgroup_used_bytes = usage - std::min(usage, reclaimable);
  }
}

}  // namespace

uint64_t MemoryInfo::usable_bytes() const {
  if (!cgroup_limit_bytes) return available_bytes;
  const uint64_t room =
      *cgroup_limit_bytes - std::min(*cgroup_limit_bytes, cgroup_used_bytes);
  return std::min(available_bytes, room);
}

MemoryInfo ReadMemoryInfo() {
  MemoryInfo info;
  const std::string text = ReadWholeFile("/proc/meminfo").value_or("");
  info.total_bytes = FindNumber(text, "MemTotal:").value_or(0) * 1024;
  info.available_bytes = FindNumber(text, "MemAvailable:").value_or(0) * 1024;
  AddGroupLimits(info);
  return info;
}

uint64_t PeakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

std::string CpuModelName() {
  const auto text = ReadWholeFile("/proc/cpuinfo").value_or("");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace muster

#include "base/machine.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <sstream>

namespace muster {
namespace {

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A whole number at the start of a file; nullopt for "max" or nothing.
std::optional<uint64_t> ReadNumber(const std::string& path) {
  const auto text = ReadFile(path);
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

struct Group {
  std::string folder;  // with memory.max or memory.limit_in_bytes
  bool is_v2 = false;
};

// The folder of this process's memory control group.
std::optional<Group> FindGroup() {
  const auto text = ReadFile("/proc/self/cgroup");
  if (!text) return std::nullopt;
  std::istringstream lines(*text);
  std::optional<Group> found;
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (names.empty() && !found) {
      found = Group{"/sys/fs/cgroup" + path, true};
    }
    if (("," + names + ",").find(",memory,") != std::string::npos) {
      found = Group{"/sys/fs/cgroup/memory" + path, false};
    }
  }
  return found;
}

void AddGroupLimits(MemoryInfo& info) {
  const auto group = FindGroup();
  if (!group) return;
  const char* limit_file =
      group->is_v2 ? "/memory.max" : "/memory.limit_in_bytes";
  const char* usage_file =
      group->is_v2 ? "/memory.current" : "/memory.usage_in_bytes";
  const std::string root =
      group->is_v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
  // A parent may be tighter than the group itself.
  for (std::string folder = group->folder; folder.size() >= root.size();
       folder.resize(folder.rfind('/'))) {
    const auto limit = ReadNumber(folder + limit_file);
    // v1 writes "no limit" as a huge number.
    if (!limit || *limit >= info.total_bytes) continue;
    if (info.cgroup_limit_bytes && *info.cgroup_limit_bytes <= *limit) continue;
    info.cgroup_limit_bytes = *limit;
    const uint64_t usage = ReadNumber(folder + usage_file).value_or(0);
    const auto stat = ReadFile(folder + "/memory.stat").value_or("");
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
  const std::string text = ReadFile("/proc/meminfo").value_or("");
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
  const auto text = ReadFile("/proc/cpuinfo").value_or("");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace muster

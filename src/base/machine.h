// What this process may use: memory and its limits. Linux.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace muster {

struct MemoryInfo {
  uint64_t total_bytes = 0;      // of the machine
  uint64_t available_bytes = 0;  // without swapping, by the kernel's estimate
  // The tightest limit of this process's control group (v1 or v2), if any, and
  // what the group uses that the kernel cannot reclaim: file cache is not
  // counted (CASES C09).
  std::optional<uint64_t> cgroup_limit_bytes = std::nullopt;
  uint64_t cgroup_used_bytes = 0;

  // What a new allocation may take: the smaller of the machine's and the
  // group's room.
  uint64_t usable_bytes() const;
};

MemoryInfo ReadMemoryInfo();

// Peak resident set of this process.
uint64_t PeakResidentBytes();

// "AMD EPYC ..." or "unknown".
std::string CpuModelName();

}  // namespace muster

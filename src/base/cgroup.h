// The control groups that this process is in (versions 1 and 2). Linux.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace muster {

struct Cgroup {
  // Its folder and those of its parents, the group's own first. In a container
  // some may be missing from the file system.
  std::vector<std::string> folders;
  bool is_v2 = false;
};

// The group that `controller` ("memory", "cpu") limits this process by; none
// where the system has no control groups. `root`: the folder that holds proc
// and sys, "" but in tests.
std::optional<Cgroup> FindCgroup(const std::string& controller,
                                 const std::string& root = "");

// How many cores' worth of time the tightest group on the way up grants; none:
// no limit. May be below 1. `root` as above.
std::optional<double> CpuQuota(const std::string& root = "");

// A whole file; none when it cannot be read.
std::optional<std::string> ReadWholeFile(const std::string& path);

}  // namespace muster

#include "base/cgroup.h"

#include <fstream>
#include <sstream>

namespace muster {
namespace {

bool Lists(const std::string& names, const std::string& controller) {
  return ("," + names + ",").find("," + controller + ",") != std::string::npos;
}

// Quota over period. v2 has "QUOTA PERIOD" in one file, "max" for no limit; v1
// has a file for each, -1 for no limit.
std::optional<double> QuotaOfFolder(const std::string& folder, bool is_v2) {
  std::string text;
  if (is_v2) {
    text = ReadWholeFile(folder + "/cpu.max").value_or("");
  } else {
    text = ReadWholeFile(folder + "/cpu.cfs_quota_us").value_or("") + " " +
           ReadWholeFile(folder + "/cpu.cfs_period_us").value_or("");
  }
  double quota_us = 0;
  double period_us = 0;
  if (!(std::istringstream(text) >> quota_us >> period_us)) return std::nullopt;
  if (quota_us <= 0 || period_us <= 0) return std::nullopt;
  return quota_us / period_us;
}

}  // namespace

std::optional<std::string> ReadWholeFile(const std::string& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::optional<Cgroup> FindCgroup(const std::string& controller,
                                 const std::string& root) {
  const auto text = ReadWholeFile(root + "/proc/self/cgroup");
  if (!text) return std::nullopt;
  // Lines of number:controllers:path; no controllers: version 2. A controller
  // that version 1 has, version 2 has not.
  std::istringstream lines(*text);
  std::optional<Cgroup> found;
  std::string path;
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = line.substr(first + 1, second - first - 1);
    const bool is_v1 = Lists(names, controller);
    if (!is_v1 && !(names.empty() && !found)) continue;
    found.emplace();
    found->is_v2 = !is_v1;
    path = line.substr(second + 1);
  }
  if (!found) return std::nullopt;
  const std::string top =
      root + "/sys/fs/cgroup" + (found->is_v2 ? "" : "/" + controller);
  for (std::string folder = top + path; folder.size() >= top.size();
       folder.resize(folder.rfind('/'))) {
    found->folders.push_back(folder);
  }
  return found;
}

std::optional<double> CpuQuota(const std::string& root) {
  const auto group = FindCgroup("cpu", root);
  if (!group) return std::nullopt;
  std::optional<double> tightest;
  for (const std::string& folder : group->folders) {
    const auto quota = QuotaOfFolder(folder, group->is_v2);
    if (quota && (!tightest || *quota < *tightest)) tightest = quota;
  }
  return tightest;
}

}  // namespace muster

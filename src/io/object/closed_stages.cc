#include "io/object/closed_stages.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace muster::io {
namespace fs = std::filesystem;

std::vector<ClosedStage> FindClosedStages(const std::string& folder) {
  std::vector<ClosedStage> stages;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string path = entry.path();
    struct stat map {};
    struct stat data {};
    if (stat((path + "/map").c_str(), &map) != 0 ||
        stat((path + "/data").c_str(), &data) != 0) {
      continue;
    }
    stages.push_back({.folder = path,
                      .size_bytes = static_cast<uint64_t>(data.st_blocks) * 512,
                      .last_use = map.st_mtim.tv_sec});
  }
  std::sort(stages.begin(), stages.end(), [](const auto& a, const auto& b) {
    return a.last_use != b.last_use ? a.last_use < b.last_use
                                    : a.folder < b.folder;
  });
  return stages;
}

// The map goes first, while it is locked: who opens the folder meanwhile begins
// anew.
bool RemoveClosedStage(const ClosedStage& stage) {
  const std::string map = stage.folder + "/map";
  const int fd = open(map.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return false;
  const bool free = flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                    unlink((stage.folder + "/data").c_str()) == 0 &&
                    unlink(map.c_str()) == 0;
  close(fd);
  if (free) rmdir(stage.folder.c_str());
  return free;
}

}  // namespace muster::io

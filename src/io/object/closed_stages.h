// What earlier runs staged and this one has not opened.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace muster::io {

struct ClosedStage {
  std::string folder;
  uint64_t size_bytes = 0;  // on disk
  int64_t last_use = 0;     // unix seconds
};

// The oldest first. Folders that are no stages are left alone.
std::vector<ClosedStage> FindClosedStages(const std::string& folder);

// False: it is in use, or cannot be removed.
bool RemoveClosedStage(const ClosedStage& stage);

}  // namespace muster::io

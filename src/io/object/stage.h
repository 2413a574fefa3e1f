// The cold tier: remote objects staged in a local folder, fetched where they
// are asked for. Each object has a folder of its own in it; docs/tiers.md.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/status.h"
#include "io/object/object_client.h"
#include "io/object/object_settings.h"
#include "io/remote_files.h"

namespace muster::io {

struct StageOptions {
  std::string folder;
  uint64_t disk_bytes = 0;         // all that is staged in it; 0: no limit
  size_t max_fetches = 16;         // under way at a time
  uint64_t fetch_bytes = 2 << 20;  // of one, at most
  uint64_t sync_bytes = 64 << 20;  // what a power failure costs at most
  ObjectClientOptions client;
};

// A thread of its own fetches, writes and flushes. Ends when the last file and
// the last pointer to it are gone: what was staged is flushed then. Fails as
// making the folder does.
Result<std::shared_ptr<RemoteFiles>> OpenStage(ObjectSettings settings,
                                               StageOptions options);

// Where --stage and MUSTER_STAGE say nothing: in the user's cache.
Result<std::string> DefaultStageFolder();

}  // namespace muster::io

// Models by URL: where they are staged, and how much of the disk they may take.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/status.h"
#include "io/remote_files.h"

namespace muster::cli {

struct RemoteFlags {
  std::string stage;           // a folder; empty: MUSTER_STAGE or the cache
  std::string disk;            // empty: no limit
  bool allow_private = false;  // redirects into private networks too
};

void AddRemoteFlags(CLI::App& command, RemoteFlags& flags);

// Null when `path` is no URL. Else whoever opens it, installed as long as the
// caller keeps it. Fails with kInvalidArgument on a flag that makes no sense,
// kIoError when the folder cannot be made.
Result<std::shared_ptr<io::RemoteFiles>> OpenRemoteFor(
    const std::string& path, const RemoteFlags& flags);

}  // namespace muster::cli

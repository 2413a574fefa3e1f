#include "cli/remote_flags.h"

#include <cstdlib>

#include "base/units.h"
#include "io/object/object_settings.h"
#include "io/object/stage.h"

namespace muster::cli {
namespace {

// Less could not hold what one step reads at once.
constexpr uint64_t kLeastDiskBytes = uint64_t{64} << 20;

Result<std::string> StageFolder(const RemoteFlags& flags) {
  if (!flags.stage.empty()) return flags.stage;
  const char* named = std::getenv("MUSTER_STAGE");
  if (named != nullptr && *named != '\0') return std::string(named);
  return io::DefaultStageFolder();
}

}  // namespace

void AddRemoteFlags(CLI::App& command, RemoteFlags& flags) {
  command.add_option("--stage", flags.stage,
                     "Folder where a model named by a URL is kept as it comes; "
                     "default: MUSTER_STAGE, else the user's cache");
  command.add_option("--disk", flags.disk,
                     "What that folder may hold, such as 20G: what was used "
                     "longest ago goes first; default: no limit");
  command.add_flag("--allow-private", flags.allow_private,
                   "Follow a server's redirects into private networks");
}

Result<std::shared_ptr<io::RemoteFiles>> OpenRemoteFor(
    const std::string& path, const RemoteFlags& flags) {
  if (!io::IsRemotePath(path)) return std::shared_ptr<io::RemoteFiles>();
  io::StageOptions options;
  ASSIGN_OR_RETURN(options.folder, StageFolder(flags));
  if (!flags.disk.empty()) {
    ASSIGN_OR_RETURN(options.disk_bytes, ParseBytes(flags.disk));
    if (options.disk_bytes < kLeastDiskBytes) {
      return InvalidArgument("--disk " + flags.disk + ": expected at least " +
                             FormatBytes(kLeastDiskBytes));
    }
  }
  options.client.allow_private_addresses = flags.allow_private;
  ASSIGN_OR_RETURN(
      auto files,
      io::OpenStage(io::ObjectSettingsFromEnvironment(), std::move(options)));
  io::InstallRemoteFiles(files);
  return files;
}

}  // namespace muster::cli

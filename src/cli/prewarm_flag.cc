#include "cli/prewarm_flag.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>

#include "cli/progress_bar.h"
#include "experts/prewarm.h"
#include "experts/use_counts.h"
#include "io/file.h"
#include "io/output_file.h"
#include "io/user_cache.h"

namespace muster::cli {
namespace {

using Uses = std::vector<uint64_t>;

Result<std::string> UsesPath(const formats::ModelFiles& files) {
  return io::UserCachePath(
      fmt::format("expert-uses/{}.txt", ToHex(experts::ModelIdentity(files))));
}

Result<Uses> UsesOfTrace(const std::string& path,
                         const experts::ExpertTable& table) {
  std::ifstream file(path);
  if (!file) {
    return NotFound(
        fmt::format("--prewarm {}: {}", path, std::strerror(errno)));
  }
  return experts::CountUses(file, path, table);
}

Result<Uses> UsesOfLastRuns(const formats::ModelFiles& files,
                            const experts::ExpertTable& table) {
  ASSIGN_OR_RETURN(const std::string path, UsesPath(files));
  if (!std::filesystem::exists(path)) {
    return NotFound("no run of this model has kept its uses yet");
  }
  ASSIGN_OR_RETURN(const std::string text,
                   io::ReadTextFile(path, experts::kMaxUsesBytes));
  auto uses = experts::ParseUses(text, experts::ModelIdentity(files), table);
  if (uses.ok()) return uses;
  return Status(uses.status().code(),
                fmt::format("{}: {}", path, uses.status().message()));
}

// This run's, and half of what was kept before: the past fades, and a short run
// does not wipe it out.
Uses UsesToKeep(std::span<const uint64_t> now, const Result<Uses>& before) {
  Uses uses(now.begin(), now.end());
  if (!before.ok()) return uses;
  for (size_t i = 0; i < uses.size(); ++i) uses[i] += (*before)[i] / 2;
  return uses;
}

}  // namespace

void AddPrewarmFlag(CLI::App& command, std::string& prewarm) {
  command.add_option(
      "--prewarm", prewarm,
      "Fill the memory for experts before the first token: as a trace of "
      "--record-routing has used them, or as the last runs (last); off: do "
      "not, "
      "and do not remember this run either");
}

Status PrewarmAsAsked(const std::string& prewarm, bool quiet,
                      const formats::ModelFiles& files,
                      const runtime::Engine& engine) {
  experts::ExpertTiers* tiers = engine.model().tiers.get();
  if (prewarm.empty() || prewarm == "off" || tiers == nullptr) return {};
  Uses uses;
  if (prewarm == "last") {
    auto last = UsesOfLastRuns(files, tiers->table());
    if (!last.ok()) {
      if (!quiet) {
        fmt::print(stderr, "note: not prewarmed: {}\n",
                   last.status().message());
      }
      return {};
    }
    uses = std::move(last).value();
  } else {
    ASSIGN_OR_RETURN(uses, UsesOfTrace(prewarm, tiers->table()));
  }
  ThreadPool pool(engine.num_threads());
  experts::PrewarmProgress progress;
  std::unique_ptr<ProgressBar> bar;
  if (!quiet) {
    bar = std::make_unique<ProgressBar>("prewarming", progress.done_bytes,
                                        progress.total_bytes, true);
  }
  const size_t num_experts = experts::Prewarm(uses, *tiers, pool, &progress);
  bar.reset();
  if (!quiet) {
    fmt::print(stderr, "note: prewarmed {} of {} experts\n", num_experts,
               tiers->table().num_experts());
  }
  return {};
}

void KeepUses(const std::string& prewarm, bool quiet,
              const formats::ModelFiles& files, const runtime::Engine& engine) {
  const experts::ExpertTiers* tiers = engine.model().tiers.get();
  if (prewarm == "off" || tiers == nullptr) return;
  const experts::Residency& residency = tiers->cache().residency();
  if (residency.num_dormant() == tiers->table().num_experts()) return;
  const auto path = UsesPath(files);
  if (!path.ok()) return;   // nowhere to keep anything
  std::error_code ignored;  // writing will say so
  std::filesystem::create_directories(
      std::filesystem::path(*path).parent_path(), ignored);
  const Status status = io::WriteFileAtomically(
      *path,
      experts::WriteUses(
          experts::ModelIdentity(files), tiers->table(),
          UsesToKeep(residency.uses(), UsesOfLastRuns(files, tiers->table()))));
  if (!status.ok() && !quiet) {
    fmt::print(stderr, "note: uses of experts are not kept: {}\n",
               status.message());
  }
}

}  // namespace muster::cli

// The flags that every command with an engine has, declared once.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/pool_flags.h"
#include "cli/remote_flags.h"
#include "cli/tuning.h"
#include "formats/model_files.h"
#include "runtime/engine.h"

namespace muster::cli {

struct EngineFlags {
  std::string model;       // empty: the demo model
  size_t num_threads = 0;  // 0: tuned, else every core
  size_t context_length = 4096;
  size_t chunk_tokens = 0;  // 0: tuned, else as the engine has it
  std::string kv_type = "f16";
  size_t logit_rows = 1;     // no flag: the command knows (see EngineOptions)
  bool load_behind = false;  // no flag: the command knows (see TierOptions)
  std::string ram;           // empty: what the process may use
  std::string eviction = "lfru";
  PoolFlags pool;
  std::string prewarm;  // see prewarm_flag.h; for commands that have the flag
  std::string cache_aware;  // empty: exact routing
  std::string tail;         // empty: never from low-bit copies
  std::string prefetch = "auto";
  RemoteFlags remote;
  std::string isa;  // empty: the best
  bool quiet = false;
  bool no_tuning = false;
};

void AddEngineFlags(CLI::App& command, EngineFlags& flags);

// Of these, only the model, where it is staged, --ram, --eviction and the other
// flags of the hot tier, --isa, --no-tuning and --quiet: for a command that
// takes the others as lists.
void AddModelFlags(CLI::App& command, EngineFlags& flags);

// The names that --kv takes.
inline const std::vector<std::string> kKvNames = {"f32", "f16", "q8"};
// REQUIRES: `name` is one of them.
kernels::KvType KvTypeOf(const std::string& name);

// What --cache-aware and --tail say. Fails with kInvalidArgument on what is no
// MARGIN[,MAX_RANK] or no WEIGHT.
Result<runtime::RoutingChoice> ParseRouting(const EngineFlags& flags);

// Whether either was given.
inline bool IsExact(const EngineFlags& flags) {
  return flags.cache_aware.empty() && flags.tail.empty();
}

// What stands for a 0 in num_threads and chunk_tokens: what was tuned for this
// machine, unless the flags say not to, else as shipped. A file of tunings that
// makes no sense is left aside with a note.
Tuning TunedDefaults(const EngineFlags& flags);

struct OpenedModel {
  // First, so that it outlives what reads through it. Null: a local model.
  // Shared: by the files that it opens.
  std::shared_ptr<io::RemoteFiles> remote;
  formats::ModelFiles files;
  std::unique_ptr<runtime::Engine> engine;  // null until LoadEngine
  double load_seconds = 0;
};

// Finds and opens the files.
Result<OpenedModel> OpenFiles(const EngineFlags& flags);

// Loads and prewarms what OpenFiles has opened, with progress bars and the
// defaults that were assumed on stderr.
Status LoadEngine(const EngineFlags& flags, OpenedModel& opened);

// Both.
Result<OpenedModel> OpenModel(const EngineFlags& flags);

}  // namespace muster::cli

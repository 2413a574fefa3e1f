// The --prewarm flag: the hot tier is filled before the first token; and what
// the next run may fill it with. Both only where experts are in tiers.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/status.h"
#include "formats/model_files.h"
#include "runtime/engine.h"

namespace muster::cli {

// Empty: nothing is filled, and the run's uses are kept for the next one.
// "off": neither. "last": filled as the last runs that kept their uses would
// want it. Else: by a trace in the file of this name.
void AddPrewarmFlag(CLI::App& command, std::string& prewarm);

// Blocks, with a progress bar unless `quiet`. Fails on a trace that cannot be
// read or is of another model; uses of the last run that are not there or make
// no sense are left aside with a note.
Status PrewarmAsAsked(const std::string& prewarm, bool quiet,
                      const formats::ModelFiles& files,
                      const runtime::Engine& engine);

// Keeps how often each expert was used, beside half of what was kept before, in
// the user's cache, unless the flag is "off" or no expert was used. What cannot
// be written is a note, unless `quiet`.
void KeepUses(const std::string& prewarm, bool quiet,
              const formats::ModelFiles& files, const runtime::Engine& engine);

}  // namespace muster::cli

// What `muster bench --tune` found best on this machine, kept in a small file
// of the user's cache ($XDG_CACHE_HOME/muster/tuning.json, or ~/.cache) and
// used wherever a flag does not say otherwise. Never changes what comes out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/status.h"

namespace muster::cli {

struct Tuning {
  size_t num_threads = 0;
  size_t chunk_tokens = 0;
};

// "AMD EPYC, 2 cores, muster 0.1.0": what is tuned for one is not for another.
std::string TuningKey();

// Fails with kNotFound when the environment names no home.
Result<std::string> TuningPath();

// nullopt: nothing is kept for this machine. Fails with kCorrupt, naming the
// file, when it makes no sense.
Result<std::optional<Tuning>> LoadTuning();

// Keeps `tuning` for this machine; those of others stay. The file is replaced
// as a whole.
Status SaveTuning(const Tuning& tuning);

}  // namespace muster::cli

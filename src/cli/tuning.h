// What `muster bench --tune` found best on this machine, kept in tuning.json of
// the user's cache (io/user_cache.h) and used wherever a flag does not say
// otherwise. Never changes what comes out.
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

// nullopt: nothing is kept for this machine. Fails with kCorrupt, naming the
// file, when it makes no sense.
Result<std::optional<Tuning>> LoadTuning();

// Keeps `tuning` for this machine; those of others stay. The file is replaced
// as a whole.
Status SaveTuning(const Tuning& tuning);

}  // namespace muster::cli

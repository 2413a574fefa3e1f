// The flags that say which experts the hot tier keeps, beside --eviction.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "base/status.h"
#include "runtime/engine_options.h"

namespace muster::cli {

struct PoolFlags {
  uint32_t load_after = 1;
  std::string unload_idle = "off";  // or seconds
  std::string pin_experts;          // a file, or the list itself
  std::string never_keep;           // likewise
};

void AddPoolFlags(CLI::App& command, PoolFlags& flags);

// Sets them in `tiers`. Fails with kInvalidArgument on a time that is none, and
// with kIoError on a file that cannot be read. What the lists say is checked
// once the model is known.
Status ApplyPoolFlags(const PoolFlags& flags, runtime::TierOptions& tiers);

}  // namespace muster::cli

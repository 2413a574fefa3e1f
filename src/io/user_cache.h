// What was measured once on this machine, kept in small JSON files of the
// user's cache: $XDG_CACHE_HOME/muster/, or ~/.cache/muster/. A file is an
// object of objects, each under a key that says what it holds for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "base/status.h"

namespace muster::io {

// "AMD EPYC, 2 cores, muster 0.1.0": what is measured for one is not for
// another.
std::string MachineKey();

// Fails with kNotFound when the environment names no home.
Result<std::string> UserCachePath(const std::string& file_name);

// nullopt: nothing is kept under `key`, or nowhere to keep it. Fails with
// kCorrupt, naming the file, when it makes no sense.
Result<std::optional<nlohmann::json>> LoadFromUserCache(
    const std::string& file_name, const std::string& key);

// Keeps `entry` under `key`; other keys stay, a file that makes no sense is
// replaced. The file is replaced as a whole: a reader never sees half of one.
Status SaveToUserCache(const std::string& file_name, const std::string& key,
                       const nlohmann::json& entry);

}  // namespace muster::io

#include "io/user_cache.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "io/file.h"

namespace muster::io {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 20;

// Every key's entry. An absent file is an empty one.
Result<json> ReadAll(const std::string& path) {
  if (!std::filesystem::exists(path)) return json::object();
  ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, kMaxFileBytes));
  json all = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object()) {
    return Corrupt(fmt::format("{}: expected a JSON object", path));
  }
  return all;
}

}  // namespace

std::string MachineKey() {
  return fmt::format("{}, {} cores, muster {}", CpuModelName(),
                     DefaultNumThreads(), MUSTER_VERSION);
}

Result<std::string> UserCachePath(const std::string& file_name) {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') {
    return fmt::format("{}/muster/{}", cache, file_name);
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    return NotFound("neither XDG_CACHE_HOME nor HOME says where to keep it");
  }
  return fmt::format("{}/.cache/muster/{}", home, file_name);
}

Result<std::optional<json>> LoadFromUserCache(const std::string& file_name,
                                              const std::string& key) {
  const auto path = UserCachePath(file_name);
  if (!path.ok()) return std::optional<json>();
  ASSIGN_OR_RETURN(const json all, ReadAll(*path));
  const auto entry = all.find(key);
  if (entry == all.end()) return std::optional<json>();
  if (!entry->is_object()) {
    return Corrupt(fmt::format("{}: expected an object for '{}'", *path, key));
  }
  return std::optional<json>(*entry);
}

Status SaveToUserCache(const std::string& file_name, const std::string& key,
                       const json& entry) {
  ASSIGN_OR_RETURN(const std::string path, UserCachePath(file_name));
  const auto old = ReadAll(path);
  json all = old.ok() ? *old : json::object();
  all[key] = entry;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(),
                                      error);
  const std::string draft = fmt::format("{}.{}", path, getpid());
  std::ofstream out(draft);
  out << all.dump(2) << '\n';
  out.close();
  if (out.fail()) return IoError(fmt::format("{}: cannot be written", draft));
  std::filesystem::rename(draft, path, error);
  if (error) return IoError(fmt::format("{}: {}", path, error.message()));
  return {};
}

}  // namespace muster::io

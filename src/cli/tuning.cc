#include "cli/tuning.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "io/file.h"

namespace muster::cli {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 20;
constexpr size_t kMaxThreads = 1024;
constexpr size_t kMaxChunk = size_t{1} << 20;

// Every machine's, by key. An absent file is an empty one.
Result<json> ReadAll(const std::string& path) {
  if (!std::filesystem::exists(path)) return json::object();
  ASSIGN_OR_RETURN(const std::string text,
                   io::ReadTextFile(path, kMaxFileBytes));
  json all = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!all.is_object()) {
    return Corrupt(fmt::format("{}: expected a JSON object", path));
  }
  return all;
}

// A whole number from 1 to `most`; nullopt: something else.
std::optional<size_t> NumberIn(const json& entry, const char* key,
                               size_t most) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_number_unsigned()) return std::nullopt;
  const auto number = found->get<uint64_t>();
  if (number < 1 || number > most) return std::nullopt;
  return number;
}

}  // namespace

std::string TuningKey() {
  return fmt::format("{}, {} cores, muster {}", CpuModelName(),
                     DefaultNumThreads(), MUSTER_VERSION);
}

Result<std::string> TuningPath() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache == '/') {
    return fmt::format("{}/muster/tuning.json", cache);
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    return NotFound("neither XDG_CACHE_HOME nor HOME says where to keep it");
  }
  return fmt::format("{}/.cache/muster/tuning.json", home);
}

Result<std::optional<Tuning>> LoadTuning() {
  const auto path = TuningPath();
  if (!path.ok()) return std::optional<Tuning>();
  ASSIGN_OR_RETURN(const json all, ReadAll(*path));
  const auto entry = all.find(TuningKey());
  if (entry == all.end()) return std::optional<Tuning>();
  if (!entry->is_object()) {
    return Corrupt(
        fmt::format("{}: expected an object for '{}'", *path, TuningKey()));
  }
  const auto num_threads = NumberIn(*entry, "num_threads", kMaxThreads);
  const auto chunk_tokens = NumberIn(*entry, "chunk_tokens", kMaxChunk);
  if (!num_threads || !chunk_tokens) {
    return Corrupt(fmt::format(
        "{}: expected num_threads from 1 to {} and chunk_tokens from 1 to {}",
        *path, kMaxThreads, kMaxChunk));
  }
  return std::optional(Tuning{*num_threads, *chunk_tokens});
}

Status SaveTuning(const Tuning& tuning) {
  ASSIGN_OR_RETURN(const std::string path, TuningPath());
  const auto old = ReadAll(path);
  json all = old.ok() ? *old : json::object();  // rubbish is replaced
  all[TuningKey()] = {{"num_threads", tuning.num_threads},
                      {"chunk_tokens", tuning.chunk_tokens}};
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(),
                                      error);
  const std::string draft = path + ".new";
  std::ofstream out(draft);
  out << all.dump(2) << '\n';
  out.close();
  if (out.fail()) return IoError(fmt::format("{}: cannot be written", draft));
  std::filesystem::rename(draft, path, error);
  if (error) {
    return IoError(fmt::format("{}: {}", path, error.message()));
  }
  return {};
}

}  // namespace muster::cli

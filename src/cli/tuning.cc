#include "cli/tuning.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "io/user_cache.h"

namespace muster::cli {
namespace {

using nlohmann::json;

constexpr char kFileName[] = "tuning.json";
constexpr size_t kMaxThreads = 1024;
constexpr size_t kMaxChunk = size_t{1} << 20;

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

Result<std::optional<Tuning>> LoadTuning() {
  ASSIGN_OR_RETURN(const auto entry,
                   io::LoadFromUserCache(kFileName, io::MachineKey()));
  if (!entry) return std::optional<Tuning>();
  const auto num_threads = NumberIn(*entry, "num_threads", kMaxThreads);
  const auto chunk_tokens = NumberIn(*entry, "chunk_tokens", kMaxChunk);
  if (!num_threads || !chunk_tokens) {
    ASSIGN_OR_RETURN(const std::string path, io::UserCachePath(kFileName));
    return Corrupt(fmt::format(
        "{}: expected num_threads from 1 to {} and chunk_tokens from 1 to {}",
        path, kMaxThreads, kMaxChunk));
  }
  return std::optional(Tuning{*num_threads, *chunk_tokens});
}

Status SaveTuning(const Tuning& tuning) {
  return io::SaveToUserCache(kFileName, io::MachineKey(),
                             {{"num_threads", tuning.num_threads},
                              {"chunk_tokens", tuning.chunk_tokens}});
}

}  // namespace muster::cli

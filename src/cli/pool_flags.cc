#include "cli/pool_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>

#include "io/file.h"

namespace muster::cli {
namespace {

constexpr uint64_t kMaxListBytes = uint64_t{1} << 20;
constexpr double kMaxIdleSeconds = 1e9;

Result<double> ParseIdleSeconds(const std::string& text) {
  if (text == "off") return 0.0;
  double seconds = 0;
  const char* end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, seconds);
  const bool is_number = error == std::errc() && next == end;
  if (!is_number || !(seconds > 0) || seconds > kMaxIdleSeconds) {
    return InvalidArgument(fmt::format(
        "--unload-idle '{}': expected seconds above 0, or off", text));
  }
  return seconds;
}

// A list is recognised by not being a file.
Result<std::string> ListOrFile(const std::string& text) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(text, error)) return text;
  return io::ReadTextFile(text, kMaxListBytes);
}

}  // namespace

void AddPoolFlags(CLI::App& command, PoolFlags& flags) {
  command
      .add_option("--load-after", flags.load_after,
                  "Uses in a row after which an expert stays in memory like "
                  "others; before, it is the first to make room")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      .add_option("--unload-idle", flags.unload_idle,
                  "Seconds after which an expert that no token took is given "
                  "up, and its memory; or off")
      ->capture_default_str();
  command.add_option("--pin-experts", flags.pin_experts,
                     "Experts that stay in memory from the start, such as "
                     "3:17,3:20,5:* (LAYER:EXPERT), or a file of them");
  command.add_option("--never-keep", flags.never_keep,
                     "Experts that are always the first to make room; as "
                     "--pin-experts");
}

Status ApplyPoolFlags(const PoolFlags& flags, runtime::TierOptions& tiers) {
  tiers.load_after = flags.load_after;
  ASSIGN_OR_RETURN(tiers.unload_idle_seconds,
                   ParseIdleSeconds(flags.unload_idle));
  ASSIGN_OR_RETURN(tiers.pin_experts, ListOrFile(flags.pin_experts));
  ASSIGN_OR_RETURN(tiers.never_keep, ListOrFile(flags.never_keep));
  return {};
}

}  // namespace muster::cli

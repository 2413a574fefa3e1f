#include "cli/tier_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/residency_report.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using telemetry::TierCounters;

// One phase of a run.
struct Spent {
  TierCounters counters;
  size_t num_tokens = 0;
  double seconds = 0;
};

Spent OfPrompt(const RunSpeeds& speeds) {
  return {speeds.tiers_after_prompt.Since(speeds.tiers_before),
          speeds.prompt_tokens, speeds.prompt_seconds};
}

Spent OfAnswer(const runtime::Engine& engine, const RunSpeeds& speeds) {
  const size_t tokens = speeds.generated_tokens;
  return {engine.tier_counters().Since(speeds.tiers_after_prompt),
          tokens > 0 ? tokens - 1 : 0, speeds.generation_seconds};
}

// While the step had nothing to do but wait.
double StallRate(const TierCounters& counters) {
  return counters.stall_seconds > 0
             ? static_cast<double>(counters.fetched_bytes) /
                   counters.stall_seconds
             : 0;
}

// Of cache-aware routing; nothing where routing was exact.
std::string ReplacedText(const TierCounters& c) {
  if (c.aware_choices == 0) return "";
  return fmt::format(
      "           cache-aware: {:.1f} % of {} choices stand in for another "
      "expert\n",
      100 * c.replaced_share(), FormatCount(c.aware_choices));
}

// Of low-bit copies; nothing where none took an expert's place.
std::string TailText(const TierCounters& c) {
  if (c.tail_experts == 0) return "";
  return fmt::format(
      "           tail: {:.1f} % of experts called from their low-bit copies, "
      "{} of them read\n",
      100 * c.tail_share(), FormatBytes(c.tail_bytes));
}

// Of guesses; nothing where none were made.
std::string GuessText(const TierCounters& c) {
  if (c.called_experts == 0) return "";
  return fmt::format(
      "           foreseen: {:.0f} % of experts called; {} read ahead, {} of "
      "them used\n",
      100 * c.foreseen_share(), FormatCount(c.guessed_experts),
      FormatCount(c.good_guesses));
}

std::string PhaseText(const char* name, const Spent& spent) {
  const TierCounters& c = spent.counters;
  if (spent.num_tokens == 0) return "";
  const std::string text = fmt::format(
      "  {:<8} {:.1f} % of {} in memory; {} read, {} a token; waited {:.0f} %, "
      "unpacked {:.0f} % of the time\n",
      name, 100 * c.hit_rate(), FormatCount(c.queries),
      FormatBytes(c.fetched_bytes),
      FormatBytes(c.fetched_bytes / spent.num_tokens),
      100 * c.stall_seconds / spent.seconds,
      100 * c.unpack_seconds / spent.seconds);
  return text + GuessText(c) + ReplacedText(c) + TailText(c);
}

// Of a remote model; the start-up is what came before the prompt.
std::string RemoteText(const TierCounters& start, const TierCounters& now) {
  if (now.remote_experts + now.staged_experts == 0) return "";
  return fmt::format(
      "  remote   {} over the network, {} of them before the prompt; {} "
      "experts "
      "fetched, {} were staged already\n",
      FormatBytes(now.remote_bytes), FormatBytes(start.remote_bytes),
      FormatCount(now.remote_experts), FormatCount(now.staged_experts));
}

// What reading ahead for single tokens was found to be worth; nothing until
// it has been tried out.
std::string PrefetchText(const runtime::PrefetchGovernor& prefetch) {
  const auto& trial = prefetch.last_trial();
  if (!trial) return "";
  std::vector<std::string> times;
  for (size_t ahead = 0; ahead < trial->step_seconds.size(); ++ahead) {
    times.push_back(fmt::format("{}: {:.1f}",
                                ahead == 0 ? "none" : fmt::format("{}", ahead),
                                1e3 * trial->step_seconds[ahead]));
  }
  return fmt::format(
      "  prefetch {}; ms a token by layers ahead: {}\n",
      trial->chosen == 0
          ? "off, it would lose time"
          : fmt::format("{} ahead, {:.1f} ms a token gained", trial->chosen,
                        1e3 * trial->gained_seconds()),
      fmt::join(times, ", "));
}

ordered_json PrefetchJson(const runtime::PrefetchGovernor& prefetch) {
  ordered_json json = {{"layers_ahead", prefetch.layers_ahead()}};
  const auto& trial = prefetch.last_trial();
  if (!trial) return json;
  json["trial_step_seconds"] = trial->step_seconds;
  json["gained_seconds_per_step"] = trial->gained_seconds();
  return json;
}

ordered_json PhaseJson(const Spent& spent) {
  const TierCounters& c = spent.counters;
  return {{"queries", c.queries},
          {"hits", c.hits},
          {"joined", c.joined},
          {"hit_rate", c.hit_rate()},
          {"fetched_experts", c.fetched_experts},
          {"fetched_bytes", c.fetched_bytes},
          {"fetched_bytes_per_token",
           spent.num_tokens == 0 ? 0.0
                                 : static_cast<double>(c.fetched_bytes) /
                                       static_cast<double>(spent.num_tokens)},
          {"called_experts", c.called_experts},
          {"foreseen_experts", c.foreseen_experts},
          {"guessed_experts", c.guessed_experts},
          {"good_guesses", c.good_guesses},
          {"guessed_bytes", c.guessed_bytes},
          {"wasted_guess_bytes", c.guessed_bytes - c.good_guess_bytes},
          {"aware_choices", c.aware_choices},
          {"replaced_choices", c.replaced_choices},
          {"tail_experts", c.tail_experts},
          {"tail_bytes", c.tail_bytes},
          {"evictions", c.evictions},
          {"transient_evictions", c.transient_evictions},
          {"idle_evictions", c.idle_evictions},
          {"failed_reads", c.failed_reads},
          {"checksum_failures", c.checksum_failures},
          {"staged_experts", c.staged_experts},
          {"remote_experts", c.remote_experts},
          {"dropped_experts", c.dropped_experts},
          {"remote_bytes", c.remote_bytes},
          {"stall_seconds", c.stall_seconds},
          {"stall_bytes_per_second", StallRate(c)},
          {"unpack_seconds", c.unpack_seconds}};
}

}  // namespace

std::string TierText(const runtime::Engine& engine, const RunSpeeds& speeds) {
  const auto* tiers = engine.model().tiers.get();
  if (tiers == nullptr) return "";
  return fmt::format("tiers      {} of {} experts in memory, {} of {}; {}\n",
                     tiers->cache().num_resident(),
                     tiers->table().num_experts(),
                     FormatBytes(tiers->cache().resident_bytes()),
                     FormatBytes(tiers->table().total_bytes()),
                     tiers->fetcher().Name()) +
         PhaseText("prompt", OfPrompt(speeds)) +
         PhaseText("answer", OfAnswer(engine, speeds)) +
         PrefetchText(engine.prefetch()) +
         RemoteText(speeds.tiers_before, engine.tier_counters()) +
         ResidencyText(*tiers);
}

ordered_json TierJson(const runtime::Engine& engine, const RunSpeeds& speeds) {
  const auto* tiers = engine.model().tiers.get();
  if (tiers == nullptr) return nullptr;
  return {{"experts", tiers->table().num_experts()},
          {"experts_bytes", tiers->table().total_bytes()},
          {"resident_experts", tiers->cache().num_resident()},
          {"resident_bytes", tiers->cache().resident_bytes()},
          {"capacity_bytes", tiers->cache().capacity_bytes()},
          {"warm", tiers->fetcher().Name()},
          {"remote_bytes", engine.tier_counters().remote_bytes},
          {"residency", ResidencyJson(*tiers)},
          {"prefetch", PrefetchJson(engine.prefetch())},
          {"prompt", PhaseJson(OfPrompt(speeds))},
          {"answer", PhaseJson(OfAnswer(engine, speeds))}};
}

}  // namespace muster::cli

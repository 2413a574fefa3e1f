#include "cli/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/machine.h"
#include "base/units.h"
#include "cli/tier_report.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using telemetry::RoutingStats;

double PerSecond(size_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

// " .:-=+*#%@": how often each expert of a layer was taken, against the most.
std::string HeatRow(const RoutingStats& stats, size_t layer) {
  static constexpr std::string_view kShades = " .:-=+*#%@";
  const auto counts = stats.counts(layer);
  const uint64_t most = *std::max_element(counts.begin(), counts.end());
  // At most 64 columns: neighbours share one.
  const size_t columns = std::min<size_t>(counts.size(), 64);
  std::string row;
  for (size_t column = 0; column < columns; ++column) {
    uint64_t largest = 0;
    for (size_t e = column * counts.size() / columns;
         e < (column + 1) * counts.size() / columns; ++e) {
      largest = std::max(largest, counts[e]);
    }
    const size_t shade =
        largest == 0 ? 0 : 1 + (largest * (kShades.size() - 2)) / most;
    row += kShades[std::min(shade, kShades.size() - 1)];
  }
  return row;
}

std::string TopExperts(const RoutingStats& stats, size_t layer) {
  const auto counts = stats.counts(layer);
  const double tokens = static_cast<double>(stats.tokens(layer));
  std::vector<std::string> parts;
  for (const uint32_t expert : stats.Top(layer, 3)) {
    parts.push_back(
        fmt::format("{} ({:.0f} %)", expert,
                    100 * static_cast<double>(counts[expert]) / tokens));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string RoutingText(const RoutingStats& stats) {
  std::string text;
  for (size_t layer = 0; layer < stats.num_layers(); ++layer) {
    if (stats.tokens(layer) == 0) continue;
    text += fmt::format("  layer {:>2}  {:>3} of {} woken  [{}]  most: {}\n",
                        layer, stats.distinct(layer), stats.num_experts(layer),
                        HeatRow(stats, layer), TopExperts(stats, layer));
  }
  return text;
}

}  // namespace

MeasuredShare MeasureShare(const runtime::Engine& engine) {
  const model::ParameterCounts& counts = engine.model().parameters;
  MeasuredShare measured;
  measured.nominal_share = counts.active_share();
  const auto& counters = engine.counters();
  if (counters.num_tokens == 0) return measured;
  measured.parameters_per_token =
      static_cast<double>(counts.always_on) +
      static_cast<double>(counters.routed_parameters) /
          static_cast<double>(counters.num_tokens);
  measured.share =
      measured.parameters_per_token / static_cast<double>(counts.total);
  return measured;
}

std::string ReportText(const runtime::Engine& engine, const RunSpeeds& speeds) {
  const model::ParameterCounts& counts = engine.model().parameters;
  const RoutingStats& routing = engine.counters().routing;
  const MeasuredShare share = MeasureShare(engine);
  std::string text = fmt::format(
      "prompt     {} tokens in {}, {:.1f} tokens/s\n"
      "answer     {} tokens, {:.1f} tokens/s\n",
      speeds.prompt_tokens, FormatSeconds(speeds.prompt_seconds),
      PerSecond(speeds.prompt_tokens, speeds.prompt_seconds),
      speeds.generated_tokens,
      PerSecond(speeds.generated_tokens > 0 ? speeds.generated_tokens - 1 : 0,
                speeds.generation_seconds));
  text += fmt::format(
      "parameters {} of {} used per token: {:.1f} % measured, {:.1f} % by the "
      "formula\n",
      FormatCount(static_cast<uint64_t>(share.parameters_per_token)),
      FormatCount(counts.total), 100 * share.share, 100 * share.nominal_share);
  text += fmt::format("memory     {} of weights, {} of cache, {} at the peak\n",
                      FormatBytes(engine.model().memory_bytes()),
                      FormatBytes(engine.kv_bytes()),
                      FormatBytes(PeakResidentBytes()));
  text += TierText(engine, speeds);
  if (routing.experts_in_all() == 0) return text + "experts    none: dense\n";
  text += fmt::format(
      "experts    {} of {} woken by {} tokens; balance {:.2f} (1: even)\n",
      routing.distinct_in_all(), routing.experts_in_all(),
      engine.counters().num_tokens, routing.Balancedness());
  return text + RoutingText(routing);
}

ordered_json ReportJson(const runtime::Engine& engine,
                        const RunSpeeds& speeds) {
  const RoutingStats& routing = engine.counters().routing;
  const MeasuredShare share = MeasureShare(engine);
  ordered_json layers = ordered_json::array();
  for (size_t layer = 0; layer < routing.num_layers(); ++layer) {
    if (routing.num_experts(layer) == 0) continue;
    layers.push_back({{"layer", layer},
                      {"num_experts", routing.num_experts(layer)},
                      {"top_k", routing.top_k(layer)},
                      {"tokens", routing.tokens(layer)},
                      {"distinct", routing.distinct(layer)},
                      {"counts", routing.counts(layer)}});
  }
  return {
      {"prompt_tokens", speeds.prompt_tokens},
      {"generated_tokens", speeds.generated_tokens},
      {"load_seconds", speeds.load_seconds},
      {"prompt_seconds", speeds.prompt_seconds},
      {"generation_seconds", speeds.generation_seconds},
      {"prompt_tokens_per_second",
       PerSecond(speeds.prompt_tokens, speeds.prompt_seconds)},
      {"generated_tokens_per_second",
       PerSecond(speeds.generated_tokens > 0 ? speeds.generated_tokens - 1 : 0,
                 speeds.generation_seconds)},
      {"parameters",
       {{"total", engine.model().parameters.total},
        {"per_token", share.parameters_per_token},
        {"share", share.share},
        {"nominal_share", share.nominal_share}}},
      {"memory",
       {{"weights_bytes", engine.model().memory_bytes()},
        {"kv_cache_bytes", engine.kv_bytes()},
        {"peak_resident_bytes", PeakResidentBytes()}}},
      {"tiers", TierJson(engine, speeds)},
      {"routing",
       {{"distinct", routing.distinct_in_all()},
        {"experts", routing.experts_in_all()},
        {"balancedness", routing.Balancedness()},
        {"layers", layers}}}};
}

}  // namespace muster::cli

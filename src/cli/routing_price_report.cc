#include "cli/routing_price_report.h"

#include <fmt/format.h>

#include "base/units.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using runtime::RoutingPrice;
using runtime::Score;
using telemetry::TierCounters;

double BytesPerToken(const TierCounters& tiers, const Score& score) {
  return static_cast<double>(tiers.fetched_bytes) /
         static_cast<double>(score.num_scored);
}

std::string SideText(const char* name, const TierCounters& tiers,
                     const Score& score, size_t num_bytes) {
  return fmt::format(
      "  {:<14} {:.4f} bits per byte; {:.1f} % of experts in memory, {} read a "
      "token\n",
      name, score.BitsPerByte(num_bytes), 100 * tiers.hit_rate(),
      FormatBytes(static_cast<uint64_t>(BytesPerToken(tiers, score))));
}

ordered_json SideJson(const TierCounters& tiers, const Score& score,
                      size_t num_bytes) {
  return {{"bits_per_byte", score.BitsPerByte(num_bytes)},
          {"perplexity", score.perplexity()},
          {"hit_rate", tiers.hit_rate()},
          {"fetched_bytes_per_token", BytesPerToken(tiers, score)}};
}

// Of what was done for what was not in memory.
std::string InsteadText(const TierCounters& tiers) {
  std::string text;
  if (tiers.aware_choices != 0) {
    text += fmt::format("; {:.2f} % stand in", 100 * tiers.replaced_share());
  }
  if (tiers.tail_experts != 0) {
    text +=
        fmt::format("; {:.2f} % from low-bit copies", 100 * tiers.tail_share());
  }
  return text;
}

}  // namespace

std::string RoutingPriceText(const RoutingPrice& price, const std::string& name,
                             size_t num_bytes) {
  const runtime::Comparison& comparison = price.comparison;
  return fmt::format(
             "{} beside exact routing\n"
             "  same experts   {:.2f} % of {} choices{}\n"
             "  same likeliest {:.2f} % of {} tokens\n"
             "  divergence     {:.3e} nats mean; {:.3e} for 99 %\n",
             name, 100 * price.same_choices_share(), price.num_choices,
             InsteadText(price.inexact), 100 * comparison.same_best_share(),
             comparison.score.num_scored, comparison.mean_divergence(),
             comparison.DivergenceAt(0.99)) +
         SideText("exact", price.exact, comparison.reference, num_bytes) +
         SideText(name.c_str(), price.inexact, comparison.score, num_bytes);
}

ordered_json RoutingPriceJson(const RoutingPrice& price, size_t num_bytes) {
  const runtime::Comparison& comparison = price.comparison;
  return {{"choices", price.num_choices},
          {"same_choices", price.same_choices_share()},
          {"replaced_choices", price.inexact.replaced_choices},
          {"tail_experts", price.inexact.tail_experts},
          {"tail_share", price.inexact.tail_share()},
          {"same_best_token", comparison.same_best_share()},
          {"divergence_nats",
           {{"mean", comparison.mean_divergence()},
            {"p99", comparison.DivergenceAt(0.99)}}},
          {"exact", SideJson(price.exact, comparison.reference, num_bytes)},
          {"inexact", SideJson(price.inexact, comparison.score, num_bytes)}};
}

}  // namespace muster::cli

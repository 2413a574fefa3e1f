#include "cli/cache_aware_report.h"

#include <fmt/format.h>

#include "base/units.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using runtime::CacheAwarePrice;
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

}  // namespace

std::string CacheAwareText(const CacheAwarePrice& price, size_t num_bytes) {
  const runtime::Comparison& comparison = price.comparison;
  return fmt::format(
             "cache-aware beside exact routing\n"
             "  same experts   {:.2f} % of {} choices; {:.2f} % stand in\n"
             "  same likeliest {:.2f} % of {} tokens\n"
             "  divergence     {:.3e} nats mean; {:.3e} for 99 %\n",
             100 * price.same_choices_share(), price.num_choices,
             100 * price.aware.replaced_share(),
             100 * comparison.same_best_share(), comparison.score.num_scored,
             comparison.mean_divergence(), comparison.DivergenceAt(0.99)) +
         SideText("exact", price.exact, comparison.reference, num_bytes) +
         SideText("cache-aware", price.aware, comparison.score, num_bytes);
}

ordered_json CacheAwareJson(const CacheAwarePrice& price, size_t num_bytes) {
  const runtime::Comparison& comparison = price.comparison;
  return {{"choices", price.num_choices},
          {"same_choices", price.same_choices_share()},
          {"replaced_choices", price.aware.replaced_choices},
          {"same_best_token", comparison.same_best_share()},
          {"divergence_nats",
           {{"mean", comparison.mean_divergence()},
            {"p99", comparison.DivergenceAt(0.99)}}},
          {"exact", SideJson(price.exact, comparison.reference, num_bytes)},
          {"aware", SideJson(price.aware, comparison.score, num_bytes)}};
}

}  // namespace muster::cli

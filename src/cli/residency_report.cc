#include "cli/residency_report.h"

#include <fmt/format.h>

#include "base/units.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using telemetry::PowerHistogram;

constexpr double kMost = 0.9;

std::string Spread(const PowerHistogram& histogram) {
  if (histogram.count() == 0) return "-";
  return fmt::format("{}/{}", FormatCount(histogram.Quantile(0.5)),
                     FormatCount(histogram.Quantile(kMost)));
}

ordered_json HistogramJson(const PowerHistogram& histogram) {
  ordered_json buckets = ordered_json::array();
  for (size_t b = 0; b < PowerHistogram::kNumBuckets; ++b) {
    if (histogram.bucket(b) == 0) continue;
    buckets.push_back({{"at_most", PowerHistogram::LargestOf(b)},
                       {"count", histogram.bucket(b)}});
  }
  return {{"count", histogram.count()},
          {"median_at_most", histogram.Quantile(0.5)},
          {"p90_at_most", histogram.Quantile(kMost)},
          {"buckets", std::move(buckets)}};
}

}  // namespace

std::string ResidencyText(const experts::ExpertTiers& tiers) {
  const experts::Residency& residency = tiers.cache().residency();
  const telemetry::ResidencyHistograms& h = residency.histograms();
  return fmt::format(
      "  turns    median/P90 at most: {} in memory, {} idle before eviction, "
      "{} from use to use; {} experts never used\n",
      Spread(h.lifetime), Spread(h.idle), Spread(h.reuse_gap),
      residency.num_dormant());
}

ordered_json ResidencyJson(const experts::ExpertTiers& tiers) {
  const experts::Residency& residency = tiers.cache().residency();
  const telemetry::ResidencyHistograms& h = residency.histograms();
  return {{"dormant_experts", residency.num_dormant()},
          {"unit", "layer turns"},
          {"lifetime", HistogramJson(h.lifetime)},
          {"idle_before_eviction", HistogramJson(h.idle)},
          {"reuse_gap", HistogramJson(h.reuse_gap)}};
}

}  // namespace muster::cli

#include "cli/bench/phase_report.h"

#include <fmt/format.h>

#include <numeric>

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using runtime::Phase;

constexpr double kGiga = 1e9;

// Seconds of one token.
double SecondsOf(const Measurement& m, Phase phase) {
  const auto tokens = static_cast<double>(m.test.num_tokens * m.seconds.size());
  return m.phase_seconds[runtime::Index(phase)] / tokens;
}

double ShareOf(const Measurement& m, Phase phase) {
  const double all =
      std::accumulate(m.phase_seconds.begin(), m.phase_seconds.end(), 0.0);
  return m.phase_seconds[runtime::Index(phase)] / all;
}

double PerSecond(double amount, double seconds) {
  return seconds > 0 ? amount / seconds : 0;
}

}  // namespace

std::string PhaseTable(const Measurement& measurement,
                       const PhaseCosts& costs) {
  std::string text = fmt::format(
      "\nWhere {} behind {} spends a token ({} threads, {} cache):\n\n"
      "| kind      | ms/token |   share |   GB/s |  GOP/s |\n"
      "|:----------|---------:|--------:|-------:|-------:|\n",
      measurement.test.name(), measurement.depth,
      measurement.engine.num_threads, measurement.engine.kv_type);
  for (size_t p = 0; p < runtime::kNumPhases; ++p) {
    const auto phase = static_cast<Phase>(p);
    const double seconds = SecondsOf(measurement, phase);
    const Cost& cost = costs[p];
    text += fmt::format(
        "| {:<9} | {:>8.3f} | {:>5.1f} % | {:>6.1f} | {:>6.1f} |\n",
        Name(phase), 1e3 * seconds, 100 * ShareOf(measurement, phase),
        PerSecond(cost.bytes, seconds) / kGiga,
        PerSecond(cost.byte_ops + cost.bfloat_ops + cost.float_ops, seconds) /
            kGiga);
  }
  return text;
}

ordered_json PhaseJson(const Measurement& measurement,
                       const PhaseCosts& costs) {
  ordered_json phases = ordered_json::array();
  for (size_t p = 0; p < runtime::kNumPhases; ++p) {
    const auto phase = static_cast<Phase>(p);
    phases.push_back({{"kind", Name(phase)},
                      {"seconds_per_token", SecondsOf(measurement, phase)},
                      {"share", ShareOf(measurement, phase)},
                      {"bytes_per_token", costs[p].bytes},
                      {"byte_ops_per_token", costs[p].byte_ops},
                      {"bfloat_ops_per_token", costs[p].bfloat_ops},
                      {"float_ops_per_token", costs[p].float_ops}});
  }
  return phases;
}

}  // namespace muster::cli

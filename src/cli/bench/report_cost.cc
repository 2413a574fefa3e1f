#include "cli/bench/report_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/bench/samples.h"
#include "runtime/engine.h"

namespace muster::cli {
namespace {

// Experts of `num_tokens` tokens in one layer.   [num_tokens, top_k]
std::vector<uint32_t> RandomExperts(const routing::RouterConfig& router,
                                    size_t num_tokens) {
  std::vector<uint32_t> ids;
  ids.reserve(num_tokens * router.top_k);
  for (size_t i = 0; i < num_tokens * router.top_k; ++i) {
    ids.push_back(static_cast<uint32_t>(BenchToken(i, 0, router.num_experts)));
  }
  return ids;
}

// The share of the fastest decode token; 0 when none was measured.
double LargestShare(double seconds_per_token,
                    const std::vector<Measurement>& measurements) {
  double share = 0;
  for (const Measurement& m : measurements) {
    if (m.test.kind != TestKind::kGeneration) continue;
    share = std::max(
        share, seconds_per_token * SpreadOf(m.tokens_per_second()).median);
  }
  return share;
}

}  // namespace

double ReportSecondsPerToken(const model::ModelConfig& config) {
  constexpr size_t kTokens = 2000;
  telemetry::RoutingStats stats = runtime::MakeRoutingStats(config);
  double seconds = 0;
  for (size_t layer = 0; layer < config.layers.size(); ++layer) {
    if (!config.layers[layer].is_moe) continue;
    const routing::RouterConfig& router = config.layers[layer].router;
    const std::vector<uint32_t> ids = RandomExperts(router, kTokens);
    const auto start = std::chrono::steady_clock::now();
    for (size_t token = 0; token < kTokens; ++token) {
      stats.Record(static_cast<uint32_t>(layer),
                   std::span(ids).subspan(token * router.top_k, router.top_k));
    }
    const std::chrono::duration<double> spent =
        std::chrono::steady_clock::now() - start;
    seconds += spent.count() / kTokens;
  }
  return seconds;
}

std::string ReportCostText(double seconds_per_token,
                           const std::vector<Measurement>& measurements) {
  return fmt::format(
      "\nCounting experts for the report: {:.2f} us a token, {:.4f} % of the "
      "fastest decode.\n",
      1e6 * seconds_per_token,
      100 * LargestShare(seconds_per_token, measurements));
}

nlohmann::ordered_json ReportCostJson(
    double seconds_per_token, const std::vector<Measurement>& measurements) {
  return {{"seconds_per_token", seconds_per_token},
          {"share_of_decode", LargestShare(seconds_per_token, measurements)}};
}

}  // namespace muster::cli

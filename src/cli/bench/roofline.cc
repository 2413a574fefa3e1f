#include "cli/bench/roofline.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "cli/bench/phase_report.h"
#include "cli/bench/samples.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

constexpr double kMega = 1e6, kGiga = 1e9;

const MachinePeak& PeakOf(const std::vector<MachinePeak>& peaks,
                          size_t num_threads) {
  const auto found =
      std::ranges::find(peaks, num_threads, &MachinePeak::num_threads);
  CHECK(found != peaks.end());
  return *found;
}

// Of one token.
PhaseCosts CostsOf(const Measurement& m, const runtime::LoadedModel& model) {
  const kernels::KvType kv = KvTypeOf(m.engine.kv_type);
  const auto count = static_cast<double>(m.test.num_tokens);
  if (m.test.kind == TestKind::kPrompt) {
    PhaseCosts costs = PrefillCost(model, kv, m.depth, m.test.num_tokens,
                                   m.engine.chunk_tokens);
    for (Cost& cost : costs) cost = 1 / count * cost;
    return costs;
  }
  // The mean over the tokens: each sees itself and those before.
  const double positions = static_cast<double>(m.depth) + (count + 1) / 2;
  return DecodeCost(model, kv, positions);
}

double MedianSpeed(const Measurement& m) {
  return SpreadOf(m.tokens_per_second()).median;
}

std::string Row(const Measurement& m, const Roof& roof) {
  const double speed = MedianSpeed(m);
  return fmt::format(
      "| {:<8} | {:>6} | {:>7} | {:>8.1f} | {:>9.3f} | {:>8.3f} | {:>8.1f} | "
      "{:<8} | {:>8.1f} | {:>5.1f} % |\n",
      m.test.name(), m.depth, m.engine.num_threads, roof.cost.bytes / kMega,
      roof.cost.byte_ops / kGiga,
      (roof.cost.bfloat_ops + roof.cost.float_ops) / kGiga,
      roof.tokens_per_second(), roof.memory_bound() ? "memory" : "compute",
      speed, 100 * speed / roof.tokens_per_second());
}

ordered_json ToJson(const MachinePeak& peak) {
  return {{"num_threads", peak.num_threads},
          {"buffer_bytes", peak.buffer_bytes},
          {"read_bytes_per_second", peak.read_bytes_per_second},
          {"byte_ops_per_second", peak.byte_ops_per_second},
          {"bfloat_ops_per_second", peak.bfloat_ops_per_second},
          {"float_ops_per_second", peak.float_ops_per_second}};
}

ordered_json ToJson(const Measurement& m, const Roof& roof,
                    const PhaseCosts& costs) {
  return {{"test", m.test.name()},
          {"depth", m.depth},
          {"num_threads", m.engine.num_threads},
          {"kv_type", m.engine.kv_type},
          {"chunk_tokens", m.engine.chunk_tokens},
          {"bytes_per_token", roof.cost.bytes},
          {"byte_ops_per_token", roof.cost.byte_ops},
          {"bfloat_ops_per_token", roof.cost.bfloat_ops},
          {"float_ops_per_token", roof.cost.float_ops},
          {"limit_tokens_per_second", roof.tokens_per_second()},
          {"bound", roof.memory_bound() ? "memory" : "compute"},
          {"share", MedianSpeed(m) / roof.tokens_per_second()},
          {"phases", PhaseJson(m, costs)}};
}

}  // namespace

double Roof::tokens_per_second() const {
  return 1 / std::max(memory_seconds, compute_seconds);
}

Roof RoofOf(const Measurement& measurement, const runtime::LoadedModel& model,
            const MachinePeak& peak) {
  const Cost cost = Sum(CostsOf(measurement, model));
  return {.cost = cost,
          .memory_seconds = cost.bytes / peak.read_bytes_per_second,
          .compute_seconds = cost.byte_ops / peak.byte_ops_per_second +
                             cost.bfloat_ops / peak.bfloat_ops_per_second +
                             cost.float_ops / peak.float_ops_per_second};
}

std::vector<MachinePeak> MeasurePeaksFor(
    const std::vector<Measurement>& measurements) {
  std::vector<MachinePeak> peaks;
  for (const Measurement& m : measurements) {
    const size_t num_threads = m.engine.num_threads;
    if (std::ranges::find(peaks, num_threads, &MachinePeak::num_threads) ==
        peaks.end()) {
      peaks.push_back(MeasureMachinePeak(num_threads));
    }
  }
  return peaks;
}

std::string RooflineText(const std::vector<MachinePeak>& peaks,
                         const std::vector<Measurement>& measurements,
                         const runtime::LoadedModel& model) {
  std::string text = "\nThe machine at best:\n";
  for (const MachinePeak& peak : peaks) {
    text += fmt::format(
        "- {} threads: {:.1f} GB/s read, {:.0f} GOP/s on bytes, {:.0f} GFLOP/s "
        "on BF16, {:.0f} GFLOP/s on floats\n",
        peak.num_threads, peak.read_bytes_per_second / kGiga,
        peak.byte_ops_per_second / kGiga, peak.bfloat_ops_per_second / kGiga,
        peak.float_ops_per_second / kGiga);
  }
  text +=
      "\n| test     |  depth | threads | MB/token | GOP/token | GFLOP/t. |    "
      "limit | bound by |  reached |   share |\n"
      "|:---------|-------:|--------:|---------:|----------:|---------:|"
      "---------:|:---------|---------:|--------:|\n";
  for (const Measurement& m : measurements) {
    text += Row(m, RoofOf(m, model, PeakOf(peaks, m.engine.num_threads)));
  }
  for (const Measurement& m : measurements) {
    text += PhaseTable(m, CostsOf(m, model));
  }
  return text;
}

ordered_json RooflineJson(const std::vector<MachinePeak>& peaks,
                          const std::vector<Measurement>& measurements,
                          const runtime::LoadedModel& model) {
  ordered_json machine = ordered_json::array();
  for (const MachinePeak& peak : peaks) machine.push_back(ToJson(peak));
  ordered_json tests = ordered_json::array();
  for (const Measurement& m : measurements) {
    const Roof roof = RoofOf(m, model, PeakOf(peaks, m.engine.num_threads));
    tests.push_back(ToJson(m, roof, CostsOf(m, model)));
  }
  return {{"machine", machine}, {"tests", tests}};
}

}  // namespace muster::cli

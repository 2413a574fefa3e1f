#include "cli/simulate/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "base/units.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

using Cell = std::function<std::string(size_t policy)>;

constexpr size_t kColumnWidth = 16;

std::string HeadRow(const SimulationReport& report, std::string_view first) {
  std::string row = fmt::format("{:<24}", first);
  for (const std::string& policy : report.policies) {
    row += fmt::format("{:>{}}", policy, kColumnWidth);
  }
  return row + "\n";
}

std::string Row(const SimulationReport& report, const std::string& first,
                const Cell& cell) {
  std::string row = fmt::format("{:<24}", first);
  for (size_t p = 0; p < report.policies.size(); ++p) {
    row += fmt::format("{:>{}}", cell(p), kColumnWidth);
  }
  return row + "\n";
}

std::string SizeName(const SimulationReport& report, const CacheSize& size) {
  const uint64_t in_all = report.bytes_in_all();
  return fmt::format("{:5.1f} %  {:>12}", 100 * size.share,
                     in_all != 0
                         ? FormatBytes(static_cast<uint64_t>(
                               size.share * static_cast<double>(in_all)))
                         : fmt::format("{:.0f}", size.num_experts));
}

std::string Percent(double share) { return fmt::format("{:.1f}", 100 * share); }

// A row for each size.
std::string Table(
    const SimulationReport& report, std::string_view title,
    const std::function<std::string(const SimulatedCase&)>& cell) {
  std::string text = fmt::format("\n{}\n", title);
  text += HeadRow(report, " cached");
  for (size_t s = 0; s < report.sizes.size(); ++s) {
    text += Row(report, SizeName(report, report.sizes[s]),
                [&](size_t p) { return cell(report.Case(p, s)); });
  }
  return text;
}

std::string LayerTable(const SimulationReport& report, size_t size) {
  std::string text = fmt::format("\nHits by layer, %, with {:.1f} % cached\n",
                                 100 * report.sizes[size].share);
  text += HeadRow(report, " layer");
  for (size_t layer = 0; layer < report.num_experts.size(); ++layer) {
    if (report.num_experts[layer] == 0) continue;
    text += Row(report, fmt::format("{:6}", layer), [&](size_t p) {
      return Percent(report.Case(p, size).simulation.layers[layer].rate());
    });
  }
  return text;
}

std::string Summary(const SimulationReport& report) {
  size_t num_moe = 0;
  uint64_t in_all = 0;
  for (const uint32_t n : report.num_experts) {
    num_moe += n != 0;
    in_all += n;
  }
  std::string text = fmt::format(
      "{}{}\n  {} tokens, {} layers with {} experts in all{}{}\n", report.trace,
      report.model.empty() ? "" : fmt::format(" ({})", report.model),
      report.num_tokens, num_moe, in_all,
      report.num_experts_assumed ? " (by the largest id)" : "",
      report.expert_bytes.empty()
          ? ""
          : fmt::format(", {}", FormatBytes(report.bytes_in_all())));
  if (report.num_prefill_tokens != 0) {
    text += fmt::format(
        "  the first {} tokens are a prompt in one step; figures are of the "
        "{} behind it\n",
        report.num_prefill_tokens,
        report.num_tokens - report.num_prefill_tokens);
  }
  return text;
}

ordered_json CountJson(const experts::HitCount& count) {
  return {{"hits", count.hits},
          {"misses", count.misses},
          {"hit_rate", count.rate()}};
}

ordered_json CaseJson(const SimulationReport& report,
                      const SimulatedCase& one) {
  ordered_json json = {{"policy", one.policy},
                       {"share", one.size.share},
                       {"experts", one.size.num_experts}};
  json.update(CountJson(one.simulation.decode));
  if (report.num_prefill_tokens != 0) {
    json["prefill"] = CountJson(one.simulation.prefill);
  }
  if (one.cost) {
    json["bytes_per_token"] = one.cost->bytes_per_token;
    if (report.num_prefill_tokens != 0) {
      json["prefill"]["bytes"] = one.cost->prefill_bytes;
    }
    if (report.speed.disk_bytes_per_second > 0) {
      json["seconds_per_token"] = {{"overlapped", one.cost->overlapped_seconds},
                                   {"serial", one.cost->serial_seconds}};
    }
  }
  ordered_json layers = ordered_json::array();
  for (size_t layer = 0; layer < report.num_experts.size(); ++layer) {
    if (report.num_experts[layer] == 0) continue;
    layers.push_back({{"layer", layer}});
    layers.back().update(CountJson(one.simulation.layers[layer]));
  }
  json["layers"] = std::move(layers);
  return json;
}

}  // namespace

uint64_t SimulationReport::bytes_in_all() const {
  uint64_t bytes = 0;
  for (size_t layer = 0; layer < expert_bytes.size(); ++layer) {
    bytes += num_experts[layer] * expert_bytes[layer];
  }
  return bytes;
}

std::string SimulationText(const SimulationReport& report, bool by_layer) {
  std::string text = Summary(report);
  text += Table(report, "Hits, %", [](const SimulatedCase& one) {
    return Percent(one.simulation.decode.rate());
  });
  if (by_layer) {
    for (size_t s = 0; s < report.sizes.size(); ++s) {
      text += LayerTable(report, s);
    }
  }
  if (report.expert_bytes.empty()) return text;

  text += Table(report, "Read, MiB a token", [](const SimulatedCase& one) {
    return fmt::format("{:.1f}", one.cost->bytes_per_token / 0x1p20);
  });
  if (report.num_prefill_tokens != 0) {
    text += Table(report, "Read for the prompt", [](const SimulatedCase& one) {
      return FormatBytes(one.cost->prefill_bytes);
    });
  }
  if (report.speed.disk_bytes_per_second <= 0) return text;

  const std::string title = fmt::format(
      "Tokens/s at {} a second of disk and {} a token in memory: reading "
      "beside computing / behind it",
      FormatBytes(static_cast<uint64_t>(report.speed.disk_bytes_per_second)),
      FormatSeconds(report.speed.compute_seconds));
  text += Table(report, title, [](const SimulatedCase& one) {
    const auto per_second = [](double seconds) {
      return seconds > 0 ? fmt::format("{:.1f}", 1 / seconds) : "-";
    };
    return fmt::format("{} / {}", per_second(one.cost->overlapped_seconds),
                       per_second(one.cost->serial_seconds));
  });
  return text;
}

ordered_json SimulationJson(const SimulationReport& report) {
  ordered_json results = ordered_json::array();
  for (const SimulatedCase& one : report.cases) {
    results.push_back(CaseJson(report, one));
  }
  return {{"trace", report.trace},
          {"model", report.model},
          {"tokens", report.num_tokens},
          {"prefill_tokens", report.num_prefill_tokens},
          {"num_experts", report.num_experts},
          {"num_experts_assumed", report.num_experts_assumed},
          {"expert_bytes", report.expert_bytes},
          {"disk_bytes_per_second", report.speed.disk_bytes_per_second},
          {"compute_seconds_per_token", report.speed.compute_seconds},
          {"results", std::move(results)}};
}

}  // namespace muster::cli

#include "cli/bench/report.h"

#include <fmt/format.h>

#include <numeric>

#include "base/machine.h"
#include "base/units.h"
#include "cli/bench/samples.h"
#include "kernels/instruction_set.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

std::string TitleOf(const model::ModelConfig& config) {
  return config.name.empty()
             ? config.family
             : fmt::format("{} ({})", config.name, config.family);
}

std::string Row(const Measurement& m) {
  const Spread speed = SpreadOf(m.tokens_per_second());
  return fmt::format(
      "| {:<8} | {:>6} | {:>7} | {:<3} | {:>5} | {:>10.2f} | {:>10.2f} | "
      "{:>10.2f} |\n",
      m.test.name(), m.depth, m.engine.num_threads, m.engine.kv_type,
      m.engine.chunk_tokens, speed.median, speed.least, speed.most);
}

double TotalSeconds(const Measurement& m) {
  return std::accumulate(m.seconds.begin(), m.seconds.end(), 0.0);
}

double ReadBytesPerToken(const Measurement& m) {
  return static_cast<double>(m.tiers.fetched_bytes) /
         static_cast<double>(m.test.num_tokens * m.seconds.size());
}

std::string TierRow(const Measurement& m) {
  return fmt::format(
      "{} behind {}: {:.1f} % of experts in memory, {} read a token, at {}/s; "
      "waited {:.0f} %, unpacked {:.0f} % of the time\n",
      m.test.name(), m.depth, 100 * m.tiers.hit_rate(),
      FormatBytes(static_cast<uint64_t>(ReadBytesPerToken(m))),
      FormatBytes(static_cast<uint64_t>(
          static_cast<double>(m.tiers.fetched_bytes) / TotalSeconds(m))),
      100 * m.tiers.stall_seconds / TotalSeconds(m),
      100 * m.tiers.unpack_seconds / TotalSeconds(m));
}

ordered_json ToJson(const Measurement& m) {
  const Spread speed = SpreadOf(m.tokens_per_second());
  return {{"test", m.test.name()},
          {"kind", m.test.kind == TestKind::kPrompt ? "prefill" : "decode"},
          {"num_tokens", m.test.num_tokens},
          {"depth", m.depth},
          {"num_threads", m.engine.num_threads},
          {"kv_type", m.engine.kv_type},
          {"chunk_tokens", m.engine.chunk_tokens},
          {"tokens_per_second",
           {{"median", speed.median},
            {"least", speed.least},
            {"most", speed.most},
            {"samples", m.tokens_per_second()}}},
          {"expert_hit_rate", m.tiers.hit_rate()},
          {"replaced_choices_share", m.tiers.replaced_share()},
          {"expert_bytes_per_token", ReadBytesPerToken(m)},
          {"stall_seconds", m.tiers.stall_seconds},
          {"seconds", m.seconds}};
}

}  // namespace

std::string MeasurementLine(const Measurement& measurement) {
  return fmt::format("{} behind {}: {:.2f} tokens/s", measurement.test.name(),
                     measurement.depth,
                     SpreadOf(measurement.tokens_per_second()).median);
}

std::string BenchTable(const BenchSubject& subject,
                       const std::vector<Measurement>& measurements) {
  std::string text = fmt::format(
      "{}, {} parameters, {} on disk, {} in memory\n"
      "muster {}, {}, {}\n\n",
      TitleOf(subject.model->config),
      FormatCount(subject.model->parameters.total),
      FormatBytes(subject.file_bytes),
      FormatBytes(subject.model->memory_bytes()), MUSTER_VERSION,
      kernels::CurrentInstructionSet(), CpuModelName());
  text +=
      "| test     |  depth | threads | kv  | chunk | tokens/s   |     lowest |"
      "    highest |\n"
      "|:---------|-------:|--------:|:----|------:|-----------:|-----------:|"
      "-----------:|\n";
  for (const Measurement& m : measurements) text += Row(m);
  if (subject.model->tiers != nullptr) {
    text += fmt::format("\n{}\n{}\n", runtime::Describe(subject.model->plan),
                        subject.model->tiers->fetcher().Name());
    for (const Measurement& m : measurements) text += TierRow(m);
  }
  return text;
}

ordered_json BenchJson(const BenchSubject& subject,
                       const std::vector<Measurement>& measurements) {
  ordered_json tests = ordered_json::array();
  for (const Measurement& m : measurements) tests.push_back(ToJson(m));
  return {{"version", MUSTER_VERSION},
          {"cpu", CpuModelName()},
          {"instruction_set", kernels::CurrentInstructionSet()},
          {"model",
           {{"path", subject.path},
            {"name", subject.model->config.name},
            {"family", subject.model->config.family},
            {"parameters", subject.model->parameters.total},
            {"active_parameters", subject.model->parameters.active},
            {"file_bytes", subject.file_bytes},
            {"memory_bytes", subject.model->memory_bytes()},
            {"load_seconds", subject.load_seconds}}},
          {"tests", tests}};
}

}  // namespace muster::cli

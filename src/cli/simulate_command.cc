// muster simulate: what a cache of experts would have done with a recorded
// trace of routing.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>

#include "base/thread_pool.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/print_json.h"
#include "cli/progress_bar.h"
#include "cli/simulate/plot.h"
#include "cli/simulate/report.h"
#include "cli/simulate/sizes.h"
#include "experts/routing_trace.h"
#include "experts/simulator.h"

namespace muster::cli {
namespace {

struct SimulateOptions {
  std::string trace;
  std::vector<std::string> policies;
  SizeFlags sizes;
  std::string expert_bytes;
  std::string disk;
  double token_ms = 0;
  size_t prefill_tokens = 0;
  std::string svg_file;
  bool by_layer = false;
  bool json = false;
  bool quiet = false;
};

Result<experts::RoutingTrace> ReadTraceFile(const std::string& path) {
  if (path == "-") return experts::ReadTrace(std::cin, "standard input");
  std::ifstream file(path);
  if (!file) {
    return NotFound(fmt::format("{}: {}", path, std::strerror(errno)));
  }
  return experts::ReadTrace(file, path);
}

// Of one expert, [num_layers]: the flag's, else the trace's; empty: not known.
Result<std::vector<uint64_t>> ExpertBytes(const SimulateOptions& options,
                                          const experts::RoutingTrace& trace) {
  if (options.expert_bytes.empty()) return trace.header.expert_bytes;
  const auto bytes = ParseBytes(options.expert_bytes);
  if (!bytes.ok() || *bytes == 0) {
    return InvalidArgument(
        fmt::format("--expert-bytes '{}': expected a size, such as 2.5M",
                    options.expert_bytes));
  }
  return std::vector<uint64_t>(trace.num_layers, *bytes);
}

Result<experts::SpeedModel> Speed(const SimulateOptions& options,
                                  bool bytes_known) {
  experts::SpeedModel speed = {.compute_seconds = options.token_ms / 1e3};
  if (options.disk.empty()) return speed;
  const auto rate = ParseBytes(options.disk);
  if (!rate.ok() || *rate == 0) {
    return InvalidArgument(fmt::format(
        "--disk '{}': expected bytes a second, such as 2G", options.disk));
  }
  if (!bytes_known) {
    return InvalidArgument(
        "--disk needs the size of an expert, which the trace does not say: add "
        "--expert-bytes");
  }
  speed.disk_bytes_per_second = static_cast<double>(*rate);
  return speed;
}

// Every policy with every size, over all cores.
void SimulateAll(const experts::Replay& replay, const CacheSizes& sizes,
                 bool quiet, SimulationReport& report) {
  const size_t num_cases = report.policies.size() * report.sizes.size();
  report.cases.resize(num_cases);
  std::atomic<uint64_t> done{0}, total{num_cases};
  std::unique_ptr<ProgressBar> bar;
  if (!quiet) {
    bar = std::make_unique<ProgressBar>("simulating", done, total, false);
  }
  ThreadPool pool(std::min(DefaultNumThreads(), num_cases));
  pool.ForEach(num_cases, [&](size_t i) {
    SimulatedCase& one = report.cases[i];
    one.policy = report.policies[i / report.sizes.size()];
    one.size = report.sizes[i % report.sizes.size()];
    const auto policy = experts::MakeSimulatedPolicy(one.policy, replay);
    one.simulation = experts::Simulate(
        replay, **policy,
        {.capacity = one.size.capacity, .per_expert = sizes.room_per_expert});
    if (!report.expert_bytes.empty()) {
      one.cost = experts::PredictCost(one.simulation, report.expert_bytes,
                                      report.speed);
    }
    one.simulation.misses = {};  // as large as the trace
    ++done;
  });
}

Status WriteSvg(const std::string& path, const std::string& svg) {
  std::ofstream file(path);
  file << svg;
  file.close();
  if (file) return {};
  return IoError(
      fmt::format("cannot write {}: {}", path, std::strerror(errno)));
}

// Names that are known, in the order given, none twice; none given: all.
Result<std::vector<std::string>> Policies(const SimulateOptions& options,
                                          const experts::Replay& replay) {
  std::vector<std::string> policies;
  for (const std::string& name : options.policies) {
    const auto policy = experts::MakeSimulatedPolicy(name, replay);
    if (!policy.ok()) return policy.status();
    if (std::find(policies.begin(), policies.end(), name) == policies.end()) {
      policies.push_back(name);
    }
  }
  if (!policies.empty()) return policies;
  const auto all = experts::SimulatedPolicyNames();
  return std::vector<std::string>(all.begin(), all.end());
}

Status Run(const SimulateOptions& options) {
  ASSIGN_OR_RETURN(const auto trace, ReadTraceFile(options.trace));
  if (options.prefill_tokens >= trace.num_tokens) {
    return InvalidArgument(
        fmt::format("--prefill {}: expected fewer than the trace's {} tokens",
                    options.prefill_tokens, trace.num_tokens));
  }
  const experts::Replay replay =
      experts::MakeReplay(trace, options.prefill_tokens);
  if (replay.num_experts_in_all() == 0) {
    return InvalidArgument(options.trace + ": no layer has experts");
  }
  SimulationReport report = {
      .trace = options.trace,
      .model = trace.header.model,
      .num_tokens = trace.num_tokens,
      .num_prefill_tokens = options.prefill_tokens,
      .num_experts = trace.num_experts,
      .num_experts_assumed = trace.header.num_experts.empty()};
  ASSIGN_OR_RETURN(report.policies, Policies(options, replay));
  ASSIGN_OR_RETURN(report.expert_bytes, ExpertBytes(options, trace));
  ASSIGN_OR_RETURN(report.speed, Speed(options, !report.expert_bytes.empty()));
  ASSIGN_OR_RETURN(const CacheSizes sizes,
                   ChooseSizes(options.sizes, replay, report.expert_bytes));
  report.sizes = sizes.sizes;
  SimulateAll(replay, sizes, options.quiet, report);
  if (!options.svg_file.empty()) {
    RETURN_IF_ERROR(WriteSvg(options.svg_file, HitRatePlot(report)));
  }
  if (options.json) {
    PrintJson(SimulationJson(report));
  } else {
    fmt::print("{}", SimulationText(report, options.by_layer));
  }
  return {};
}

}  // namespace

void AddSimulateCommand(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<SimulateOptions>();
  CLI::App* command = app.add_subcommand(
      "simulate", "Replay recorded routing against caches of experts");
  command
      ->add_option("trace", options->trace,
                   "What `muster run --record-routing` wrote; -: standard "
                   "input")
      ->required();
  command
      ->add_option(
          "--policy", options->policies,
          "What gives way, of lru, lfru, least-stale and belady (which "
          "knows the future: the bound); none: all")
      ->delimiter(',');
  CLI::Option* ram =
      command
          ->add_option("--ram", options->sizes.ram,
                       "Bytes of cache, for experts alone, such as 2G,4G")
          ->delimiter(',');
  command
      ->add_option("--experts", options->sizes.experts,
                   "Experts that fit, such as 512, or the share of all, such "
                   "as 25%; none: 10% to 90%")
      ->delimiter(',')
      ->excludes(ram);
  command->add_option("--expert-bytes", options->expert_bytes,
                      "Size of an expert, such as 2.5M; none: as the trace "
                      "says");
  command->add_option("--disk", options->disk,
                      "Bytes that the disk reads a second, such as 2G: "
                      "predicts tokens a second");
  command
      ->add_option("--token-ms", options->token_ms,
                   "Milliseconds a token with all experts in memory")
      ->check(CLI::Range(0.0, 1e9))
      ->capture_default_str();
  command
      ->add_option("--prefill", options->prefill_tokens,
                   "First tokens that are a prompt in one step")
      ->capture_default_str();
  command->add_flag("--by-layer", options->by_layer,
                    "Print the hits of each layer, too");
  command->add_option("--svg", options->svg_file,
                      "Draw hits over the share cached into this file");
  command->add_flag("--json", options->json, "Print JSON");
  command->add_flag("-q,--quiet", options->quiet,
                    "Print nothing but the result");
  command->footer(
      "G, M and K are powers of 1024, GB, MB and KB of 1000.\n"
      "Examples:\n"
      "  muster run model.gguf -f prompt.txt --record-routing trace.jsonl\n"
      "  muster simulate trace.jsonl\n"
      "  muster simulate trace.jsonl --ram 1G,2G,4G --disk 2G --token-ms 20\n"
      "  muster simulate trace.jsonl --policy lru,belady --svg hits.svg");
  command->callback([options, &outcome] {
    const Status status = Run(*options);
    if (!status.ok()) outcome.exit_code = Fail(status);
  });
}

}  // namespace muster::cli

// muster doctor: what this machine has, and what it lacks.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/machine.h"
#include "base/thread_pool.h"
#include "base/units.h"
#include "cli/bench/machine_peak.h"
#include "cli/command.h"
#include "cli/demo_model.h"
#include "cli/print_json.h"
#include "io/known_disk.h"
#include "kernels/instruction_set.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

struct DoctorOptions {
  bool json = false;
  std::string disk;
};

struct Diagnosis {
  std::string cpu;
  size_t num_cores = 0;
  std::vector<std::string> instruction_sets;
  std::string chosen;
  MemoryInfo memory;
  double memory_bytes_per_second = 0;
  std::string disk_folder;
  Result<io::DiskProbe> disk = Status();
  uint64_t disk_free_bytes = 0;
  std::string demo_model;  // empty: not found
  std::vector<std::string> advice;
};

Diagnosis Diagnose(const DoctorOptions& options) {
  Diagnosis d;
  d.cpu = CpuModelName();
  d.num_cores = DefaultNumThreads();
  d.instruction_sets = kernels::SupportedInstructionSets();
  d.chosen = kernels::CurrentInstructionSet();
  d.memory = ReadMemoryInfo();
  d.memory_bytes_per_second = MeasureReadPeak(d.num_cores).bytes_per_second;
  d.disk_folder = options.disk;
  d.disk = io::ProbeAndRememberDisk(options.disk);
  std::error_code error;
  const auto space = std::filesystem::space(options.disk, error);
  if (!error) d.disk_free_bytes = space.available;
  if (auto demo = ModelOrDemo(""); demo.ok()) d.demo_model = *demo;
  if (d.chosen == "avx2") {
    d.advice.push_back(
        "no AVX-512: prompts run at about half the speed per core");
  }
  if (d.memory.cgroup_limit_bytes) {
    d.advice.push_back(fmt::format(
        "the control group limits memory to {}, of {} in the machine",
        FormatBytes(*d.memory.cgroup_limit_bytes),
        FormatBytes(d.memory.total_bytes)));
  }
  if (!d.disk.ok()) d.advice.push_back(d.disk.status().message());
  if (d.disk.ok() && !d.disk->why_not_direct.empty()) {
    d.advice.push_back(
        fmt::format("no direct I/O, so that files are read through the page "
                    "cache: {}",
                    d.disk->why_not_direct));
  }
  if (d.demo_model.empty()) {
    d.advice.push_back(
        "the demo model was not found: name a MODEL, or set "
        "MUSTER_DEMO_MODEL");
  }
  return d;
}

ordered_json ToJson(const Diagnosis& d) {
  ordered_json json = {{"version", MUSTER_VERSION},
                       {"cpu", d.cpu},
                       {"num_cores", d.num_cores},
                       {"instruction_sets", d.instruction_sets},
                       {"instruction_set", d.chosen},
                       {"memory",
                        {{"total_bytes", d.memory.total_bytes},
                         {"available_bytes", d.memory.available_bytes},
                         {"usable_bytes", d.memory.usable_bytes()},
                         {"cgroup_limit_bytes", nullptr},
                         {"read_bytes_per_second", d.memory_bytes_per_second}}},
                       {"disk", {{"folder", d.disk_folder}}},
                       {"demo_model", d.demo_model},
                       {"advice", d.advice}};
  if (d.memory.cgroup_limit_bytes) {
    json["memory"]["cgroup_limit_bytes"] = *d.memory.cgroup_limit_bytes;
  }
  if (d.disk.ok()) {
    const io::DiskTrial& best = d.disk->best;
    json["disk"]["direct_io"] = best.direct;
    json["disk"]["depth"] = best.depth;
    json["disk"]["engine"] = d.disk->engine;
    json["disk"]["read_bytes_per_second"] = best.bytes_per_second;
    json["disk"]["free_bytes"] = d.disk_free_bytes;
  }
  return json;
}

void PrintText(const Diagnosis& d) {
  fmt::print("muster {}\n", MUSTER_VERSION);
  fmt::print("  {:<13} {}, {} core{} for this process\n", "processor", d.cpu,
             d.num_cores, d.num_cores == 1 ? "" : "s");
  fmt::print("  {:<13} {} (of {})\n", "instructions", d.chosen,
             fmt::join(d.instruction_sets, ", "));
  fmt::print("  {:<13} {} of {} usable, read at {}/s\n", "memory",
             FormatBytes(d.memory.usable_bytes()),
             FormatBytes(d.memory.total_bytes),
             FormatBytes(static_cast<uint64_t>(d.memory_bytes_per_second)));
  if (d.disk.ok()) {
    const io::DiskTrial& best = d.disk->best;
    fmt::print("  {:<13} {}: read at {}/s {} ({}), {} free\n", "disk",
               d.disk_folder,
               FormatBytes(static_cast<uint64_t>(best.bytes_per_second)),
               best.direct ? "past the cache" : "through the cache",
               d.disk->engine, FormatBytes(d.disk_free_bytes));
  }
  fmt::print("  {:<13} {}\n", "demo model",
             d.demo_model.empty() ? "not found" : d.demo_model);
  if (d.advice.empty()) {
    fmt::print("Nothing is missing.\n");
  } else {
    fmt::print("Worth knowing:\n  - {}\n", fmt::join(d.advice, "\n  - "));
  }
}

}  // namespace

void AddDoctorCommand(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what this machine has: instructions, memory, disk");
  command->add_flag("--json", options->json, "Print JSON");
  options->disk = std::filesystem::temp_directory_path().string();
  command
      ->add_option("--disk", options->disk,
                   "Folder whose disk is measured, with a file of 256 MiB that "
                   "is deleted afterwards")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  muster doctor\n"
      "  muster doctor --disk /models --json");
  command->callback([options, &outcome] {
    const Diagnosis diagnosis = Diagnose(*options);
    if (options->json) {
      PrintJson(ToJson(diagnosis));
    } else {
      PrintText(diagnosis);
    }
    outcome.exit_code = kExitOk;
  });
}

}  // namespace muster::cli

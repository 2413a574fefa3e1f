// muster verify: whether a pack is what was written, bit by bit.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "base/thread_pool.h"
#include "base/units.h"
#include "cli/command.h"
#include "cli/print_json.h"
#include "cli/progress_bar.h"
#include "experts/pack_verifier.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

struct VerifyFlags {
  std::string pack;
  std::string repair_from;
  size_t num_threads = 0;
  bool json = false;
  bool quiet = false;
};

Result<experts::PackCheck> Check(const VerifyFlags& flags) {
  experts::PackProgress progress;
  std::unique_ptr<ProgressBar> bar;
  if (!flags.quiet) {
    bar = std::make_unique<ProgressBar>("verifying", progress.done_bytes,
                                        progress.total_bytes, true);
  }
  const size_t threads =
      flags.num_threads != 0 ? flags.num_threads : 2 * DefaultNumThreads();
  return experts::VerifyPack(flags.pack, threads, &progress);
}

ordered_json ToJson(const experts::PackCheck& check) {
  ordered_json damages = ordered_json::array();
  for (const experts::PackDamage& damage : check.damages) {
    damages.push_back({{"file", damage.file},
                       {"part", damage.part},
                       {"offset", damage.offset},
                       {"bytes", damage.size_bytes},
                       {"what", damage.what}});
  }
  return {{"checked_bytes", check.checked_bytes},
          {"experts", check.num_experts},
          {"damages", damages}};
}

void PrintDamages(const experts::PackCheck& check) {
  for (const experts::PackDamage& damage : check.damages) {
    fmt::print("{}: {} (bytes {} to {}): {}\n", damage.file, damage.part,
               damage.offset, damage.offset + damage.size_bytes, damage.what);
  }
}

Status Verify(const VerifyFlags& flags) {
  ASSIGN_OR_RETURN(auto check, Check(flags));
  if (!flags.json) PrintDamages(check);
  size_t num_repaired = 0;
  if (!check.damages.empty() && !flags.repair_from.empty()) {
    ASSIGN_OR_RETURN(const auto source,
                     experts::PackSource::Open(flags.repair_from));
    RETURN_IF_ERROR(experts::RepairPack(flags.pack, check, *source));
    num_repaired = check.damages.size();
    ASSIGN_OR_RETURN(check, Check(flags));
  }
  if (flags.json) {
    ordered_json json = ToJson(check);
    json["repaired"] = num_repaired;
    PrintJson(json);
  }
  if (!check.damages.empty()) {
    return Corrupt(fmt::format(
        "{}: {} damaged part{}. `muster verify {} --repair-from MODEL` writes "
        "{} again",
        flags.pack, check.damages.size(), check.damages.size() == 1 ? "" : "s",
        flags.pack, check.damages.size() == 1 ? "it" : "them"));
  }
  if (!flags.json && !flags.quiet) {
    fmt::print("{}: {} experts, {}: {}\n", flags.pack, check.num_experts,
               FormatBytes(check.checked_bytes),
               num_repaired == 0 ? "every bit as written"
                                 : fmt::format("{} repaired, now every bit as "
                                               "written",
                                               num_repaired));
  }
  return {};
}

}  // namespace

void AddVerifyCommand(CLI::App& app, Outcome& outcome) {
  auto flags = std::make_shared<VerifyFlags>();
  CLI::App* command = app.add_subcommand(
      "verify", "Check every byte of an expert pack; repair it");
  command->add_option("pack", flags->pack, "The pack's folder")->required();
  command->add_option("--repair-from", flags->repair_from,
                      "The model that the pack was made from: damaged parts "
                      "are written again");
  command
      ->add_option("-t,--threads", flags->num_threads,
                   "Threads; 0: two for each core that this process may use")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Print JSON");
  command->add_flag("-q,--quiet", flags->quiet, "Print nothing but damage");
  command->footer(
      "Damage goes to standard output, a line each; then the exit code is 1.\n"
      "Examples:\n"
      "  muster verify model.pack/\n"
      "  muster verify model.pack/ --repair-from model.gguf\n"
      "  muster verify --json model.pack/ | jq .damages");
  command->callback([flags, &outcome] {
    if (const Status status = Verify(*flags); !status.ok()) {
      outcome.exit_code = Fail(status);
    }
  });
}

}  // namespace muster::cli

// muster: the command line.
#include <fmt/format.h>

#include <algorithm>
#include <clocale>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "cli/command.h"
#include "kernels/instruction_set.h"

namespace muster::cli {
namespace {

// How many single-letter edits turn one word into the other.
size_t EditDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

// Every name that could have been meant: subcommands, or a subcommand's flags.
std::vector<std::string> KnownNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands({})) {
    names.push_back(sub->get_name());
  }
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

std::string Suggestion(const CLI::App& app, const std::string& word) {
  std::string best;
  size_t best_distance = 3;  // further away is not a slip of the hand
  for (const std::string& name : KnownNames(app)) {
    const size_t distance = EditDistance(word, name);
    if (distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best.empty() ? "" : fmt::format(" (did you mean '{}'?)", best);
}

int UsageError(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const CLI::App& context = chosen.empty() ? app : *chosen.front();
  // Unknown words are left over on the app or on the subcommand.
  const std::vector<std::string> left = app.remaining(true);
  std::string what = error.what();
  if (!left.empty()) {
    what = fmt::format("'{}' is not known here{}", left.front(),
                       Suggestion(context, left.front()));
  }
  fmt::print(stderr, "muster: {}\nTry `muster {}--help`.\n", what,
             chosen.empty() ? "" : context.get_name() + " ");
  return kExitUsage;
}

// `--isa` of any subcommand, or the environment.
Status ChooseInstructionSet() {
  const char* forced = std::getenv("MUSTER_ISA");
  if (forced == nullptr || *forced == '\0') return {};
  return kernels::ForceInstructionSet(forced);
}

int Main(int argc, char** argv) {
  if (const Status cpu = kernels::CheckCpu(); !cpu.ok()) return Fail(cpu);
  if (const Status isa = ChooseInstructionSet(); !isa.ok()) {
    return Fail(InvalidArgument("MUSTER_ISA: " + isa.message()));
  }
  CLI::App app(
      "Runs sparse Mixture-of-Experts language models and shows which experts "
      "every token wakes.");
  app.name("muster");
  app.set_version_flag("--version", "muster " MUSTER_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  muster run                        talk to the demo model\n"
      "  muster run model.gguf -p 'Once'   continue a text\n"
      "  muster inspect model.gguf         what is in a model, what it needs\n"
      "  muster doctor                     what this machine can do\n"
      "Environment: MUSTER_ISA forces avx2, avx512, avx512vnni or avx512bf16; "
      "MUSTER_DEMO_MODEL\nnames the model that `muster run` takes when none is "
      "given.");
  Outcome outcome;
  AddRunCommand(app, outcome);
  AddInspectCommand(app, outcome);
  AddTokenizeCommand(app, outcome);
  AddEvalCommand(app, outcome);
  AddBenchCommand(app, outcome);
  AddSimulateCommand(app, outcome);
  AddPackCommand(app, outcome);
  AddVerifyCommand(app, outcome);
  AddPullCommand(app, outcome);
  AddDoctorCommand(app, outcome);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const CLI::CallForVersion& version) {
    return app.exit(version);
  } catch (const CLI::ParseError& error) {
    return UsageError(app, error);
  }
  return outcome.exit_code;
}

}  // namespace
}  // namespace muster::cli

int main(int argc, char** argv) {
  try {
    return muster::cli::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "muster: out of memory\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "muster: {}\n", error.what());
  }
  return muster::cli::kExitFailure;
}

// What every subcommand of `muster` is built from.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/status.h"

namespace muster::cli {

// Exit codes of the program.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;  // what was asked could not be done
inline constexpr int kExitUsage = 2;    // what was asked makes no sense

// Set by a subcommand's callback; main returns it.
struct Outcome {
  int exit_code = kExitOk;
};

// Each adds its subcommand to `app`; the callback prints and fills `outcome`,
// which must outlive the parse.
void AddRunCommand(CLI::App& app, Outcome& outcome);
void AddInspectCommand(CLI::App& app, Outcome& outcome);
void AddTokenizeCommand(CLI::App& app, Outcome& outcome);
void AddEvalCommand(CLI::App& app, Outcome& outcome);
void AddBenchCommand(CLI::App& app, Outcome& outcome);
void AddSimulateCommand(CLI::App& app, Outcome& outcome);
void AddPackCommand(CLI::App& app, Outcome& outcome);
void AddVerifyCommand(CLI::App& app, Outcome& outcome);
void AddPullCommand(CLI::App& app, Outcome& outcome);
void AddDoctorCommand(CLI::App& app, Outcome& outcome);

// Prints "muster: message" on stderr and returns the exit code that fits.
int Fail(const Status& status);

}  // namespace muster::cli

// The text that a command works on: -p, -f or standard input.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "base/status.h"

namespace muster::cli {

struct TextInput {
  std::optional<std::string> prompt;  // -p; may be empty
  std::string file;                   // -f; empty: none, "-": standard input

  bool given() const { return prompt.has_value() || !file.empty(); }
};

// Declares -p and -f. `use` says what for, such as "to continue".
void AddTextFlags(CLI::App& command, const std::string& use, TextInput& input);

// The prompt, else the file, else all of standard input. Blocks. Fails as
// io::ReadTextFile does.
Result<std::string> ReadText(const TextInput& input);

}  // namespace muster::cli

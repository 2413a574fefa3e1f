// The flags that say how tokens are chosen and when to stop, declared once.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/generation.h"

namespace muster::cli {

struct GenerationFlags {
  GenerationOptions options;  // what the flags set directly
  bool greedy = false;
  std::vector<std::string> logit_bias;  // "TOKEN=BIAS"
  int64_t seed = -1;
};

void AddGenerationFlags(CLI::App& command, GenerationFlags& flags);

// Puts greedy, biases and seed into the options; draws a seed where none was
// given. Fails with kInvalidArgument on values that make no sense.
Result<GenerationOptions> ResolveGeneration(const GenerationFlags& flags);

}  // namespace muster::cli

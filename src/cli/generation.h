// Prompt ids in, text out, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/report.h"
#include "cli/routing_recorder.h"
#include "runtime/engine.h"
#include "runtime/sampler.h"
#include "tokenizer/tokenizer.h"

namespace muster::cli {

struct GenerationOptions {
  size_t max_tokens = 256;
  bool ignore_end = false;  // go on past the end-of-text token
  std::vector<std::string> stops;
  runtime::SamplingOptions sampling;
  // Null: nothing is recorded. REQUIRES: attached to the engine.
  RoutingRecorder* recorder = nullptr;
};

struct Generation {
  std::vector<int32_t> tokens;  // the end token left out
  std::string text;
  std::string finish_reason;  // "stop", "length" or "interrupted"
  RunSpeeds speeds;
};

// Appends `prompt` behind what the engine has and generates. `show` gets each
// piece of text as soon as it is whole UTF-8 and no stop string can begin in
// it. With no tokenizer there is no text: `show` gets nothing, only tokens come
// out. Fails as Engine::Append does. The context's end finishes with "length".
Result<Generation> Generate(
    runtime::Engine& engine, const tokenizer::Tokenizer* tokenizer,
    std::span<const int32_t> prompt, const GenerationOptions& options,
    const std::function<void(const std::string&)>& show);

}  // namespace muster::cli

// A conversation on the terminal.
#pragma once

#include <string>

#include "cli/engine_flags.h"
#include "cli/generation.h"
#include "tokenizer/chat_template.h"
#include "tokenizer/tokenizer.h"

namespace muster::cli {

struct ChatOptions {
  std::string system;  // empty: none
  GenerationOptions generation;
  bool quiet = false;
};

// Reads lines from stdin until its end; answers on stdout. Ctrl-C stops the
// answer. Returns when there is no more input.
Status Chat(runtime::Engine& engine, const tokenizer::Tokenizer& tokenizer,
            const tokenizer::ChatTemplate& chat_template,
            const ChatOptions& options);

// The model's own template; ChatML, with a note on stderr unless `quiet`, where
// it has none.
Result<tokenizer::ChatTemplate> ChatTemplateOf(const formats::ModelFiles& files,
                                               bool quiet);

}  // namespace muster::cli

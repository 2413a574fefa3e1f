// muster run: text in, text out, and a report of the experts it woke.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/chat.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/generation.h"
#include "cli/generation_flags.h"
#include "cli/interrupt.h"
#include "cli/prewarm_flag.h"
#include "cli/print_json.h"
#include "cli/report.h"
#include "cli/text_input.h"
#include "cli/trace_file.h"
#include "tokenizer/tokenizer.h"

namespace muster::cli {
namespace {

struct RunOptions {
  EngineFlags engine;
  GenerationFlags generation;
  TextInput text;
  std::string token_ids;
  std::string system;
  bool chat = false;
  bool json = false;
  bool no_report = false;
  std::string trace_file;
  std::string routing_file;
};

Status CheckOneSource(const RunOptions& options) {
  const int sources = int{options.text.prompt.has_value()} +
                      int{!options.text.file.empty()} +
                      int{!options.token_ids.empty()} + int{options.chat};
  if (sources > 1) {
    return InvalidArgument(
        "take one of -p, -f, --tokens and --chat, not several");
  }
  return {};
}

Result<std::vector<int32_t>> ParseTokenIds(const std::string& text) {
  std::vector<int32_t> ids;
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    int32_t id = 0;
    const auto [next, error] = std::from_chars(at, end, id);
    if (error != std::errc() || (next < end && *next != ',')) {
      return InvalidArgument(fmt::format(
          "--tokens '{}': expected whole numbers with commas between", text));
    }
    ids.push_back(id);
    at = next + 1;
  }
  return ids;
}

void PrintResult(const RunOptions& options, uint64_t seed,
                 const runtime::Engine& engine, const Generation& generation,
                 bool has_text) {
  if (options.json) {
    nlohmann::ordered_json json = ReportJson(engine, generation.speeds);
    json["tokens"] = generation.tokens;
    json["text"] = generation.text;
    json["finish_reason"] = generation.finish_reason;
    json["seed"] = seed;
    PrintJson(json);
    return;
  }
  if (!has_text) {
    fmt::print("{}", fmt::join(generation.tokens, ","));
  }
  fmt::print("\n");
  std::fflush(stdout);
  if (!options.no_report && !options.engine.quiet) {
    fmt::print(stderr, "\n{}", ReportText(engine, generation.speeds));
  }
}

struct Prompt {
  std::string text;  // empty: token ids were given
  std::vector<int32_t> tokens;
};

Result<Prompt> ReadPrompt(const RunOptions& options,
                          const tokenizer::Tokenizer* tokenizer) {
  Prompt prompt;
  if (!options.token_ids.empty()) {
    ASSIGN_OR_RETURN(prompt.tokens, ParseTokenIds(options.token_ids));
    return prompt;
  }
  ASSIGN_OR_RETURN(prompt.text, ReadText(options.text));
  prompt.tokens = tokenizer->Encode(prompt.text);
  if (prompt.tokens.empty() && tokenizer->bos() != tokenizer::kNoToken) {
    prompt.tokens = {tokenizer->bos()};
  }
  if (prompt.tokens.empty()) {
    return InvalidArgument(
        "the prompt is empty, and the model has no token "
        "that begins a text");
  }
  return prompt;
}

// `tokenizer`: null where token ids were given.
Status Continue(const RunOptions& options,
                const GenerationOptions& generation_options,
                const Prompt& prompt, OpenedModel& opened,
                const tokenizer::Tokenizer* tokenizer) {
  const auto show = [&](const std::string& piece) {
    if (options.json) return;
    fmt::print("{}", piece);
    std::fflush(stdout);
  };
  // The answer continues the prompt: show both.
  if (!options.engine.quiet) show(prompt.text);
  InterruptGuard guard;
  ASSIGN_OR_RETURN(auto generation,
                   Generate(*opened.engine, tokenizer, prompt.tokens,
                            generation_options, show));
  generation.speeds.load_seconds = opened.load_seconds;
  PrintResult(options, generation_options.sampling.seed, *opened.engine,
              generation, tokenizer != nullptr);
  return {};
}

Status Converse(const RunOptions& options,
                const GenerationOptions& generation_options,
                const tokenizer::ChatTemplate& chat_template,
                OpenedModel& opened, const tokenizer::Tokenizer& tokenizer) {
  RETURN_IF_ERROR(Chat(*opened.engine, tokenizer, chat_template,
                       {.system = options.system,
                        .generation = generation_options,
                        .quiet = options.engine.quiet}));
  if (!options.no_report && !options.engine.quiet) {
    fmt::print(stderr, "\n{}", ReportText(*opened.engine, {}));
  }
  return {};
}

Status CheckVocabulary(const tokenizer::Tokenizer& tokenizer,
                       const runtime::Engine& engine) {
  const size_t model_size = engine.model().config.vocab_size;
  if (tokenizer.vocab_size() <= model_size) return {};
  return Corrupt(fmt::format("the tokenizer has {} tokens, and the model {}",
                             tokenizer.vocab_size(), model_size));
}

bool IsChat(const RunOptions& options) {
  const bool nothing_given = !options.text.given() && options.token_ids.empty();
  return options.chat || (nothing_given && isatty(STDIN_FILENO) != 0);
}

// Weights are loaded when all else has been found good. `recorder` may be null.
Status RunModel(const RunOptions& options, RoutingRecorder* recorder) {
  ASSIGN_OR_RETURN(auto generation, ResolveGeneration(options.generation));
  generation.recorder = recorder;
  ASSIGN_OR_RETURN(auto opened, OpenFiles(options.engine));
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  if (options.token_ids.empty()) {
    ASSIGN_OR_RETURN(tokenizer, tokenizer::LoadTokenizer(opened.files));
    for (const std::string& warning : tokenizer->warnings()) {
      if (!options.engine.quiet) fmt::print(stderr, "note: {}\n", warning);
    }
  }
  std::optional<tokenizer::ChatTemplate> chat_template;
  Prompt prompt;
  if (IsChat(options)) {
    ASSIGN_OR_RETURN(chat_template,
                     ChatTemplateOf(opened.files, options.engine.quiet));
  } else {
    ASSIGN_OR_RETURN(prompt, ReadPrompt(options, tokenizer.get()));
  }
  RETURN_IF_ERROR(LoadEngine(options.engine, opened));
  if (tokenizer != nullptr) {
    RETURN_IF_ERROR(CheckVocabulary(*tokenizer, *opened.engine));
  }
  if (recorder != nullptr) recorder->Attach(*opened.engine);
  RETURN_IF_ERROR(
      chat_template
          ? Converse(options, generation, *chat_template, opened, *tokenizer)
          : Continue(options, generation, prompt, opened, tokenizer.get()));
  KeepUses(options.engine.prewarm, options.engine.quiet, opened.files,
           *opened.engine);
  return {};
}

Status Run(const RunOptions& options) {
  RETURN_IF_ERROR(CheckOneSource(options));
  if (options.routing_file.empty()) return RunModel(options, nullptr);
  // Opened first: who mistypes a folder need not wait for an answer.
  ASSIGN_OR_RETURN(const auto recorder,
                   RoutingRecorder::Create(options.routing_file));
  RETURN_IF_ERROR(RunModel(options, recorder.get()));
  return recorder->Finish();
}

}  // namespace

void AddRunCommand(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand(
      "run", "Generate text; no prompt on a terminal: a conversation");
  AddEngineFlags(*command, options->engine);
  AddPrewarmFlag(*command, options->engine.prewarm);
  command->add_flag_callback(
      "--preload", [options] { options->engine.load_behind = false; },
      "Load every expert that fits before the first token, not while it "
      "answers");
  options->engine.load_behind = true;
  AddTextFlags(*command, "to continue", options->text);
  command->add_option("--tokens", options->token_ids,
                      "Token ids to continue, such as 1,17,5; prints ids");
  command->add_flag("--chat", options->chat,
                    "A conversation: one message a line");
  command->add_option("--system", options->system,
                      "System message of the conversation");
  AddGenerationFlags(*command, options->generation);
  command->add_flag("--json", options->json,
                    "Print text, tokens and report as JSON");
  command->add_flag("--no-report", options->no_report,
                    "Leave the report of experts out");
  command->add_option("--trace", options->trace_file,
                      "Write what each thread did to this file, for Perfetto");
  command->add_option("--record-routing", options->routing_file,
                      "Write which experts each token took to this file, for "
                      "`muster simulate`");
  command->footer(
      "Text goes to standard output, the report to standard error. Ctrl-C "
      "stops the answer.\n"
      "Examples:\n"
      "  muster run -p 'It was a dark night' -n 80\n"
      "  muster run model.gguf -f prompt.txt --greedy --json\n"
      "  muster run model.gguf --chat --system 'Answer briefly.'");
  command->callback([options, &outcome] {
    const Status status =
        RunTraced(options->trace_file, [&] { return Run(*options); });
    if (!status.ok()) outcome.exit_code = Fail(status);
  });
}

}  // namespace muster::cli

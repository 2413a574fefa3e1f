// muster run: text in, text out, and a report of the experts it woke.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>

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

Status RunOnce(const RunOptions& options,
               const GenerationOptions& generation_options, OpenedModel& opened,
               const tokenizer::Tokenizer* tokenizer) {
  std::vector<int32_t> prompt;
  if (!options.token_ids.empty()) {
    ASSIGN_OR_RETURN(prompt, ParseTokenIds(options.token_ids));
  } else {
    ASSIGN_OR_RETURN(const std::string text, ReadText(options.text));
    prompt = tokenizer->Encode(text);
    if (prompt.empty() && tokenizer->bos() != tokenizer::kNoToken) {
      prompt = {tokenizer->bos()};
    }
    if (prompt.empty()) {
      return InvalidArgument(
          "the prompt is empty, and the model has no token "
          "that begins a text");
    }
    // The answer continues the prompt: show both.
    if (!options.json && !options.engine.quiet) {
      fmt::print("{}", text);
      std::fflush(stdout);
    }
  }
  InterruptGuard guard;
  const auto show = [&](const std::string& piece) {
    if (options.json) return;
    fmt::print("{}", piece);
    std::fflush(stdout);
  };
  const bool has_text = tokenizer != nullptr && options.token_ids.empty();
  ASSIGN_OR_RETURN(auto generation,
                   Generate(*opened.engine, has_text ? tokenizer : nullptr,
                            prompt, generation_options, show));
  generation.speeds.load_seconds = opened.load_seconds;
  PrintResult(options, generation_options.sampling.seed, *opened.engine,
              generation, has_text);
  return {};
}

// `recorder` may be null.
Status RunModel(const RunOptions& options, RoutingRecorder* recorder) {
  ASSIGN_OR_RETURN(auto generation, ResolveGeneration(options.generation));
  ASSIGN_OR_RETURN(auto opened, OpenModel(options.engine));
  generation.recorder = recorder;
  if (recorder != nullptr) recorder->Attach(*opened.engine);
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  if (options.token_ids.empty()) {
    ASSIGN_OR_RETURN(tokenizer, tokenizer::LoadTokenizer(opened.files));
    for (const std::string& warning : tokenizer->warnings()) {
      if (!options.engine.quiet) fmt::print(stderr, "note: {}\n", warning);
    }
    if (tokenizer->vocab_size() > opened.engine->model().config.vocab_size) {
      return Corrupt(fmt::format(
          "the tokenizer has {} tokens, and the model {}",
          tokenizer->vocab_size(), opened.engine->model().config.vocab_size));
    }
  }
  const bool nothing_given = !options.text.given() && options.token_ids.empty();
  if (options.chat || (nothing_given && isatty(STDIN_FILENO) != 0)) {
    ASSIGN_OR_RETURN(const auto chat_template,
                     ChatTemplateOf(opened.files, options.engine.quiet));
    RETURN_IF_ERROR(Chat(*opened.engine, *tokenizer, chat_template,
                         {.system = options.system,
                          .generation = generation,
                          .quiet = options.engine.quiet}));
    if (!options.no_report && !options.engine.quiet) {
      fmt::print(stderr, "\n{}", ReportText(*opened.engine, {}));
    }
  } else {
    RETURN_IF_ERROR(RunOnce(options, generation, opened, tokenizer.get()));
  }
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

// muster run: text in, text out, and a report of the experts it woke.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/chat.h"
#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/generation.h"
#include "cli/interrupt.h"
#include "cli/report.h"
#include "io/file.h"
#include "tokenizer/tokenizer.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

struct RunOptions {
  EngineFlags engine;
  std::string prompt;
  bool has_prompt = false;
  std::string file;
  std::string token_ids;
  std::string system;
  bool chat = false;
  bool json = false;
  bool no_report = false;
  bool greedy = false;
  GenerationOptions generation;
  std::vector<std::string> logit_bias;
  int64_t seed = -1;
};

Status UseLogitBias(const std::vector<std::string>& words,
                    runtime::SamplingOptions& sampling) {
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    int32_t token = 0;
    const char* begin = word.data();
    const auto parsed = std::from_chars(begin, begin + word.size(), token);
    if (equals == std::string::npos || parsed.ptr != begin + equals) {
      return InvalidArgument(fmt::format(
          "--logit-bias '{}': expected TOKEN=BIAS, such as 50256=-inf", word));
    }
    const std::string value = word.substr(equals + 1);
    char* end = nullptr;
    const float bias = std::strtof(value.c_str(), &end);
    if (value.empty() || *end != '\0') {
      return InvalidArgument(
          fmt::format("--logit-bias '{}': '{}' is not a number", word, value));
    }
    sampling.logit_bias[token] = bias;
  }
  return {};
}

Status FinishOptions(RunOptions& options) {
  runtime::SamplingOptions& sampling = options.generation.sampling;
  if (options.greedy) sampling.temperature = 0;
  sampling.seed = options.seed >= 0 ? static_cast<uint64_t>(options.seed)
                                    : std::random_device{}();
  RETURN_IF_ERROR(UseLogitBias(options.logit_bias, sampling));
  const int sources = int{options.has_prompt} + int{!options.file.empty()} +
                      int{!options.token_ids.empty()} + int{options.chat};
  if (sources > 1) {
    return InvalidArgument(
        "take one of -p, -f, --tokens and --chat, not several");
  }
  return runtime::Validate(sampling);
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

Result<std::string> PromptText(const RunOptions& options) {
  if (options.has_prompt) return options.prompt;
  if (!options.file.empty() && options.file != "-") {
    return io::ReadTextFile(options.file, uint64_t{1} << 30);
  }
  return std::string(std::istreambuf_iterator<char>(std::cin), {});
}

void PrintResult(const RunOptions& options, const runtime::Engine& engine,
                 const Generation& generation, bool has_text) {
  if (options.json) {
    ordered_json json = ReportJson(engine, generation.speeds);
    json["tokens"] = generation.tokens;
    json["text"] = generation.text;
    json["finish_reason"] = generation.finish_reason;
    json["seed"] = options.generation.sampling.seed;
    fmt::print("{}\n", json.dump(2, ' ', false,
                                 nlohmann::json::error_handler_t::replace));
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

Status RunOnce(const RunOptions& options, OpenedModel& opened,
               const tokenizer::Tokenizer* tokenizer) {
  std::vector<int32_t> prompt;
  if (!options.token_ids.empty()) {
    ASSIGN_OR_RETURN(prompt, ParseTokenIds(options.token_ids));
  } else {
    ASSIGN_OR_RETURN(const std::string text, PromptText(options));
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
                            prompt, options.generation, show));
  generation.speeds.load_seconds = opened.load_seconds;
  PrintResult(options, *opened.engine, generation, has_text);
  return {};
}

Status Run(RunOptions& options) {
  RETURN_IF_ERROR(FinishOptions(options));
  ASSIGN_OR_RETURN(auto opened, OpenModel(options.engine));
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
  const bool nothing_given =
      !options.has_prompt && options.file.empty() && options.token_ids.empty();
  if (options.chat || (nothing_given && isatty(STDIN_FILENO) != 0)) {
    ASSIGN_OR_RETURN(const auto chat_template,
                     ChatTemplateOf(opened.files, options.engine.quiet));
    RETURN_IF_ERROR(Chat(*opened.engine, *tokenizer, chat_template,
                         {.system = options.system,
                          .generation = options.generation,
                          .quiet = options.engine.quiet}));
    if (!options.no_report && !options.engine.quiet) {
      fmt::print(stderr, "\n{}", ReportText(*opened.engine, {}));
    }
    return {};
  }
  return RunOnce(options, opened, tokenizer.get());
}

void AddSamplingFlags(CLI::App& command, RunOptions& options) {
  GenerationOptions& generation = options.generation;
  runtime::SamplingOptions& sampling = generation.sampling;
  command
      .add_option("-n,--max-tokens", generation.max_tokens,
                  "Tokens to generate at most")
      ->check(CLI::Range(0, 1 << 28))
      ->capture_default_str();
  command
      .add_option("--temp,--temperature", sampling.temperature,
                  "0: always the likeliest token")
      ->capture_default_str();
  command.add_flag("--greedy", options.greedy, "The same as --temp 0");
  command
      .add_option("--top-k", sampling.top_k, "Likeliest tokens kept; 0: all")
      ->capture_default_str();
  command
      .add_option("--top-p", sampling.top_p,
                  "Likeliest tokens that hold this probability together")
      ->capture_default_str();
  command
      .add_option("--min-p", sampling.min_p,
                  "Tokens at least this likely against the likeliest")
      ->capture_default_str();
  command
      .add_option("--repetition-penalty", sampling.repetition_penalty,
                  "Divides the logits of recent tokens; 1: none")
      ->capture_default_str();
  command
      .add_option("--presence-penalty", sampling.presence_penalty,
                  "Taken from the logits of recent tokens, once")
      ->capture_default_str();
  command
      .add_option("--frequency-penalty", sampling.frequency_penalty,
                  "Taken from the logits of recent tokens, for each time")
      ->capture_default_str();
  command
      .add_option("--penalty-window", sampling.penalty_window,
                  "Last tokens that count as recent")
      ->capture_default_str();
  command.add_option("--logit-bias", options.logit_bias,
                     "TOKEN=BIAS added to a logit; -inf forbids; may repeat");
  command.add_option("--seed", options.seed,
                     "Same seed, same text; -1: another each time");
  command.add_option("--stop", generation.stops,
                     "Stop before this text; may repeat");
  command.add_flag("--ignore-eos", generation.ignore_end,
                   "Go on past the end of the text");
}

}  // namespace

void AddRunCommand(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand(
      "run", "Generate text; no prompt on a terminal: a conversation");
  AddEngineFlags(*command, options->engine);
  command->add_option("-p,--prompt", options->prompt, "Text to continue");
  command->add_option("-f,--file", options->file,
                      "File with the text to continue; -: standard input");
  command->add_option("--tokens", options->token_ids,
                      "Token ids to continue, such as 1,17,5; prints ids");
  command->add_flag("--chat", options->chat,
                    "A conversation: one message a line");
  command->add_option("--system", options->system,
                      "System message of the conversation");
  AddSamplingFlags(*command, *options);
  command->add_flag("--json", options->json,
                    "Print text, tokens and report as JSON");
  command->add_flag("--no-report", options->no_report,
                    "Leave the report of experts out");
  command->footer(
      "Text goes to standard output, the report to standard error. Ctrl-C "
      "stops the answer.\n"
      "Examples:\n"
      "  muster run -p 'It was a dark night' -n 80\n"
      "  muster run model.gguf -f prompt.txt --greedy --json\n"
      "  muster run model.gguf --chat --system 'Answer briefly.'");
  command->callback([options, command, &outcome] {
    options->has_prompt = command->count("--prompt") > 0;
    const Status status = Run(*options);
    if (!status.ok()) outcome.exit_code = Fail(status);
  });
}

}  // namespace muster::cli

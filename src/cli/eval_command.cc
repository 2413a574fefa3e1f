// muster eval: how well a model predicts a text, alone or beside a reference.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/print_json.h"
#include "cli/progress_bar.h"
#include "cli/report.h"
#include "cli/routing_price_report.h"
#include "cli/text_input.h"
#include "runtime/evaluation.h"
#include "runtime/routing_price.h"
#include "tokenizer/tokenizer.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;
using runtime::Comparison;
using runtime::Score;

constexpr size_t kDefaultWindow = 1024;

struct EvalOptions {
  EngineFlags engine;
  std::string reference;  // empty: none
  std::string file;
  size_t window = 0;
  size_t stride = 0;
  size_t limit = 0;  // of tokens; 0: none
  bool json = false;
};

// The text as the model cuts it.
struct Text {
  size_t num_bytes = 0;
  std::vector<int32_t> tokens;
};

Result<Text> ReadTokens(const EvalOptions& options,
                        const tokenizer::Tokenizer& tokenizer,
                        const std::string& text) {
  Text read = {.num_bytes = text.size(), .tokens = tokenizer.Encode(text)};
  if (options.limit > 0 && options.limit < read.tokens.size()) {
    read.tokens.resize(options.limit);
    read.num_bytes = tokenizer.Decode(read.tokens).size();
  }
  if (read.tokens.size() < 2) {
    return InvalidArgument(
        fmt::format("{}: {} tokens, expected at least 2 to predict one",
                    options.file, read.tokens.size()));
  }
  return read;
}

// A window's logits are wanted at once; token by token, a row of them.
size_t LogitRows(const EvalOptions& options) {
  if (!IsExact(options.engine)) return 1;
  return options.window == 0 ? kDefaultWindow : options.window;
}

Result<runtime::Windows> ChooseWindows(const EvalOptions& options,
                                       size_t context_length) {
  runtime::Windows windows;
  windows.size = options.window == 0 ? std::min(context_length, kDefaultWindow)
                                     : options.window;
  windows.stride = options.stride == 0 ? windows.size / 2 : options.stride;
  if (windows.size < 2 || windows.size > context_length || windows.stride < 1 ||
      windows.stride >= windows.size) {
    return InvalidArgument(fmt::format(
        "a window of {} moving by {}: expected 2 to {} and less than the "
        "window",
        windows.size, windows.stride, context_length));
  }
  return windows;
}

double BitsPerByte(const Score& score, const Text& text) {
  return score.BitsPerByte(text.num_bytes);
}

// What `work(done)` returns, and how long it took; draws a bar meanwhile.
template <typename Work>
auto Watch(const EvalOptions& options, const Text& text, double* seconds,
           const Work& work) {
  std::atomic<uint64_t> done{0}, total{text.tokens.size()};
  std::unique_ptr<ProgressBar> bar;
  if (!options.engine.quiet) {
    bar = std::make_unique<ProgressBar>("evaluating", done, total, false);
  }
  const auto start = std::chrono::steady_clock::now();
  auto result = work(done);
  *seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return result;
}

ordered_json ScoreJson(const EvalOptions& options, const Text& text,
                       const Score& score, double seconds) {
  return {{"file", options.file},
          {"bytes", text.num_bytes},
          {"tokens", text.tokens.size()},
          {"scored_tokens", score.num_scored},
          {"nats", score.nats},
          {"perplexity", score.perplexity()},
          {"bits_per_byte", BitsPerByte(score, text)},
          {"seconds", seconds}};
}

double LnPerplexityDelta(const Comparison& comparison) {
  return comparison.score.mean_nats() - comparison.reference.mean_nats();
}

ordered_json ReferenceJson(const EvalOptions& options, const Text& text,
                           const Comparison& comparison) {
  return {{"model", options.reference},
          {"perplexity", comparison.reference.perplexity()},
          {"bits_per_byte", BitsPerByte(comparison.reference, text)},
          {"ln_perplexity_delta", LnPerplexityDelta(comparison)},
          {"divergence_nats",
           {{"mean", comparison.mean_divergence()},
            {"median", comparison.DivergenceAt(0.5)},
            {"p95", comparison.DivergenceAt(0.95)},
            {"max", comparison.DivergenceAt(1)}}},
          {"same_best_token", comparison.same_best_share()}};
}

void PrintScore(const EvalOptions& options, const Text& text,
                const Score& score) {
  fmt::print("{}: {} bytes, {} tokens\n", options.file, text.num_bytes,
             text.tokens.size());
  fmt::print("  perplexity     {:.4f}\n  bits per byte  {:.4f}\n",
             score.perplexity(), BitsPerByte(score, text));
}

void PrintComparison(const EvalOptions& options, const Comparison& comparison) {
  fmt::print("beside {}\n", options.reference);
  fmt::print("  perplexity     {:.4f}, ln of the quotient {:+.6f}\n",
             comparison.reference.perplexity(), LnPerplexityDelta(comparison));
  fmt::print(
      "  divergence     {:.3e} nats mean; {:.3e} median, {:.3e} for 95 %, "
      "{:.3e} at most\n",
      comparison.mean_divergence(), comparison.DivergenceAt(0.5),
      comparison.DivergenceAt(0.95), comparison.DivergenceAt(1));
  fmt::print("  same likeliest {:.2f} % of {} tokens\n",
             100 * comparison.same_best_share(), comparison.score.num_scored);
}

Status ScoreAlone(const EvalOptions& options, runtime::Engine& engine,
                  const Text& text) {
  ASSIGN_OR_RETURN(const auto windows,
                   ChooseWindows(options, engine.context_length()));
  double seconds = 0;
  const Result<Score> score = Watch(options, text, &seconds, [&](auto& done) {
    return runtime::ScoreTokens(engine, text.tokens, windows, done);
  });
  if (!score.ok()) return score.status();
  if (options.json) {
    ordered_json json = ScoreJson(options, text, *score, seconds);
    json["routing"] = ReportJson(engine, {})["routing"];
    PrintJson(json);
    return {};
  }
  PrintScore(options, text, *score);
  if (!options.engine.quiet) {
    fmt::print(stderr, "\n{}",
               ReportText(engine, {.prompt_tokens = text.tokens.size(),
                                   .prompt_seconds = seconds}));
  }
  return {};
}

// Both models must mean the same by a token id.
Result<OpenedModel> OpenReference(const EvalOptions& options,
                                  const std::string& text,
                                  const std::vector<int32_t>& tokens) {
  EngineFlags flags = options.engine;
  flags.model = options.reference;
  flags.logit_rows = LogitRows(options);
  ASSIGN_OR_RETURN(auto opened, OpenModel(flags));
  ASSIGN_OR_RETURN(const auto tokenizer,
                   tokenizer::LoadTokenizer(opened.files));
  if (tokenizer->Encode(text) != tokens) {
    return InvalidArgument(fmt::format(
        "{} cuts the text into other tokens than the model does: their "
        "predictions cannot be compared",
        options.reference));
  }
  return opened;
}

Status CompareWithReference(const EvalOptions& options, OpenedModel& opened,
                            OpenedModel& reference, const Text& text) {
  runtime::Engine& engine = *opened.engine;
  ASSIGN_OR_RETURN(
      const auto windows,
      ChooseWindows(options, std::min(engine.context_length(),
                                      reference.engine->context_length())));
  double seconds = 0;
  const Result<Comparison> comparison =
      Watch(options, text, &seconds, [&](auto& done) {
        return runtime::CompareTokens(engine, *reference.engine, text.tokens,
                                      windows, done);
      });
  if (!comparison.ok()) return comparison.status();
  if (options.json) {
    ordered_json json = ScoreJson(options, text, comparison->score, seconds);
    json["reference"] = ReferenceJson(options, text, *comparison);
    json["routing"] = ReportJson(engine, {})["routing"];
    PrintJson(json);
    return {};
  }
  PrintScore(options, text, comparison->score);
  PrintComparison(options, *comparison);
  // The seconds are both models': no speed of one.
  if (!options.engine.quiet) fmt::print(stderr, "\n{}", ReportText(engine, {}));
  return {};
}

std::string NameOfRouting(const EngineFlags& flags) {
  if (flags.tail.empty()) return "cache-aware";
  return flags.cache_aware.empty() ? "tail" : "aware, tail";
}

// The model that routes exactly is loaded again: it has experts in memory of
// its own.
Status CompareWithExact(const EvalOptions& options, runtime::Engine& inexact,
                        const Text& text) {
  EngineFlags flags = options.engine;
  flags.cache_aware.clear();
  flags.tail.clear();
  flags.logit_rows = LogitRows(options);
  ASSIGN_OR_RETURN(const auto exact, OpenModel(flags));
  ASSIGN_OR_RETURN(
      const auto windows,
      ChooseWindows(options, std::min(inexact.context_length(),
                                      exact.engine->context_length())));
  double seconds = 0;
  const auto price = Watch(options, text, &seconds, [&](auto& done) {
    return runtime::PriceRouting(inexact, *exact.engine, text.tokens,
                                 windows.size, done);
  });
  if (!price.ok()) return price.status();
  if (options.json) {
    ordered_json json =
        ScoreJson(options, text, price->comparison.score, seconds);
    json["routing_price"] = RoutingPriceJson(*price, text.num_bytes);
    PrintJson(json);
    return {};
  }
  PrintScore(options, text, price->comparison.score);
  fmt::print("{}", RoutingPriceText(*price, NameOfRouting(options.engine),
                                    text.num_bytes));
  return {};
}

Status Run(const EvalOptions& options) {
  EngineFlags flags = options.engine;
  flags.logit_rows = LogitRows(options);
  ASSIGN_OR_RETURN(auto opened, OpenModel(flags));
  ASSIGN_OR_RETURN(const auto tokenizer,
                   tokenizer::LoadTokenizer(opened.files));
  ASSIGN_OR_RETURN(const std::string bytes, ReadText({.file = options.file}));
  ASSIGN_OR_RETURN(const Text text, ReadTokens(options, *tokenizer, bytes));
  if (!IsExact(options.engine)) {
    return CompareWithExact(options, *opened.engine, text);
  }
  if (options.reference.empty()) {
    return ScoreAlone(options, *opened.engine, text);
  }
  ASSIGN_OR_RETURN(auto reference, OpenReference(options, bytes, text.tokens));
  return CompareWithReference(options, opened, reference, text);
}

}  // namespace

void AddEvalCommand(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand(
      "eval",
      "Measure perplexity and bits per byte on a text, and the divergence from "
      "another model");
  AddEngineFlags(*command, options->engine);
  command
      ->add_option("-f,--file", options->file,
                   "File with the text; -: standard input")
      ->required();
  CLI::Option* reference =
      command->add_option("--reference", options->reference,
                          "Also say how far the model's predictions are from "
                          "those of this one, such as its unquantised form");
  for (const char* name : {"--cache-aware", "--tail"}) {
    CLI::Option* inexact = command->get_option(name);
    inexact->excludes(reference)->description(
        inexact->get_description() +
        ". Runs the text token by token beside exact routing, each with a "
        "--ram of its own, and says what that costs and saves");
  }
  command->add_option("--limit", options->limit,
                      "Tokens of the text to take at most; 0: all");
  command->add_option("--window", options->window,
                      "Tokens that the model sees at once; 0: the context, at "
                      "most 1024");
  command->add_option("--stride", options->stride,
                      "Tokens that a window moves on by; 0: half of it");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "The divergence is KL(reference || model) of the next token's "
      "distribution, in nats.\n"
      "Examples:\n"
      "  muster eval -f models/demo/heldout/novels.txt\n"
      "  muster eval model.gguf -f text.txt --window 2048 --json\n"
      "  muster eval model-q4_k.gguf -f text.txt --reference model-bf16/\n"
      "  muster eval model.pack/ -f text.txt --ram 8G --cache-aware 0.2 "
      "--limit 512\n"
      "  muster eval model.pack/ -f text.txt --ram 8G --tail 0.3 --limit 512");
  command->callback([options, &outcome] {
    const Status status = Run(*options);
    if (!status.ok()) outcome.exit_code = Fail(status);
  });
}

}  // namespace muster::cli

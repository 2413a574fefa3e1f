// muster eval: how well a model predicts a text.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <numbers>

#include "cli/command.h"
#include "cli/engine_flags.h"
#include "cli/print_json.h"
#include "cli/progress_bar.h"
#include "cli/report.h"
#include "cli/text_input.h"
#include "tokenizer/tokenizer.h"

namespace muster::cli {
namespace {

using nlohmann::ordered_json;

struct EvalOptions {
  EngineFlags engine;
  std::string file;
  size_t window = 0;
  size_t stride = 0;
  bool json = false;
};

struct Score {
  size_t num_tokens = 0;  // in the text
  size_t num_scored = 0;
  double nats = 0;  // of the scored tokens together
  size_t num_bytes = 0;
  double seconds = 0;

  double perplexity() const {
    return std::exp(nats / static_cast<double>(num_scored));
  }
  // All bytes of the text, although a first token without a predecessor is not
  // scored: it is one of thousands.
  double bits_per_byte() const {
    return nats / std::numbers::ln2 / static_cast<double>(num_bytes);
  }
};

// -ln softmax(logits)[token]
double Surprise(std::span<const float> logits, int32_t token) {
  const float most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - most);
  return most + std::log(sum) - logits[static_cast<size_t>(token)];
}

// Windows of `window` tokens that move on by `stride`: each token is scored
// once, with at least window - stride tokens before it, but for the first
// window.
Result<Score> ScoreTokens(runtime::Engine& engine,
                          std::span<const int32_t> tokens, size_t window,
                          size_t stride, std::atomic<uint64_t>& done) {
  constexpr size_t kPiece = 32;  // rows of logits that are kept at once
  const size_t vocab = engine.model().config.vocab_size;
  Score score{.num_tokens = tokens.size()};
  size_t scored_until = 1;  // the first token has nothing before it
  for (size_t begin = 0; scored_until < tokens.size(); begin += stride) {
    const size_t end = std::min(begin + window, tokens.size());
    engine.Rewind(0);
    // What an earlier window scored is context only: no logits are needed.
    const size_t context_end = std::max(begin, scored_until - 1);
    if (context_end > begin) {
      ASSIGN_OR_RETURN(const auto ignored, engine.Append(tokens.subspan(
                                               begin, context_end - begin)));
      static_cast<void>(ignored);
    }
    for (size_t at = context_end; at + 1 < end; at += kPiece) {
      const size_t count = std::min(kPiece, end - 1 - at);
      ASSIGN_OR_RETURN(const auto logits,
                       engine.AppendForAllLogits(tokens.subspan(at, count)));
      for (size_t i = 0; i < count; ++i) {
        score.nats +=
            Surprise(logits.subspan(i * vocab, vocab), tokens[at + i + 1]);
        ++score.num_scored;
      }
      done = at + count + 1;
    }
    scored_until = end;
  }
  return score;
}

Result<Score> Evaluate(const EvalOptions& options, runtime::Engine& engine,
                       const tokenizer::Tokenizer& tokenizer) {
  ASSIGN_OR_RETURN(const std::string text, ReadText({.file = options.file}));
  const std::vector<int32_t> tokens = tokenizer.Encode(text);
  if (tokens.size() < 2) {
    return InvalidArgument(
        fmt::format("{}: {} tokens, expected at least 2 to predict one",
                    options.file, tokens.size()));
  }
  const size_t window = options.window == 0
                            ? std::min<size_t>(engine.context_length(), 1024)
                            : options.window;
  const size_t stride = options.stride == 0 ? window / 2 : options.stride;
  if (window < 2 || window > engine.context_length() || stride < 1 ||
      stride >= window) {
    return InvalidArgument(
        fmt::format("a window of {} moving by {}: expected 2 to {} and less "
                    "than the window",
                    window, stride, engine.context_length()));
  }
  std::atomic<uint64_t> done{0}, total{tokens.size()};
  const auto start = std::chrono::steady_clock::now();
  Result<Score> score = Status();
  {
    std::unique_ptr<ProgressBar> bar;
    if (!options.engine.quiet) {
      bar = std::make_unique<ProgressBar>("evaluating", done, total, false);
    }
    score = ScoreTokens(engine, tokens, window, stride, done);
  }
  if (!score.ok()) return score;
  score->num_bytes = text.size();
  score->seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
  return score;
}

Status Run(const EvalOptions& options) {
  ASSIGN_OR_RETURN(auto opened, OpenModel(options.engine));
  ASSIGN_OR_RETURN(const auto tokenizer,
                   tokenizer::LoadTokenizer(opened.files));
  ASSIGN_OR_RETURN(const Score score,
                   Evaluate(options, *opened.engine, *tokenizer));
  if (options.json) {
    ordered_json json = {{"file", options.file},
                         {"bytes", score.num_bytes},
                         {"tokens", score.num_tokens},
                         {"scored_tokens", score.num_scored},
                         {"nats", score.nats},
                         {"perplexity", score.perplexity()},
                         {"bits_per_byte", score.bits_per_byte()},
                         {"seconds", score.seconds}};
    json["routing"] = ReportJson(*opened.engine, {})["routing"];
    PrintJson(json);
    return {};
  }
  fmt::print("{}: {} bytes, {} tokens\n", options.file, score.num_bytes,
             score.num_tokens);
  fmt::print("  perplexity     {:.4f}\n  bits per byte  {:.4f}\n",
             score.perplexity(), score.bits_per_byte());
  if (!options.engine.quiet) {
    fmt::print(stderr, "\n{}",
               ReportText(*opened.engine, {.prompt_tokens = score.num_tokens,
                                           .prompt_seconds = score.seconds}));
  }
  return {};
}

}  // namespace

void AddEvalCommand(CLI::App& app, Outcome& outcome) {
  auto options = std::make_shared<EvalOptions>();
  CLI::App* command = app.add_subcommand(
      "eval", "Measure perplexity and bits per byte on a text");
  AddEngineFlags(*command, options->engine);
  command
      ->add_option("-f,--file", options->file,
                   "File with the text; -: standard input")
      ->required();
  command->add_option("--window", options->window,
                      "Tokens that the model sees at once; 0: the context, at "
                      "most 1024");
  command->add_option("--stride", options->stride,
                      "Tokens that a window moves on by; 0: half of it");
  command->add_flag("--json", options->json, "Print JSON");
  command->footer(
      "Examples:\n"
      "  muster eval -f models/demo/heldout/novels.txt\n"
      "  muster eval model.gguf -f text.txt --window 2048 --json");
  command->callback([options, &outcome] {
    const Status status = Run(*options);
    if (!status.ok()) outcome.exit_code = Fail(status);
  });
}

}  // namespace muster::cli

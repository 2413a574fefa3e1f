#include "cli/generation_flags.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <random>

namespace muster::cli {
namespace {

constexpr int kMaxTokens = 1 << 28;

Status UseLogitBias(const std::string& word,
                    runtime::SamplingOptions& sampling) {
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
  return {};
}

}  // namespace

void AddGenerationFlags(CLI::App& command, GenerationFlags& flags) {
  GenerationOptions& options = flags.options;
  runtime::SamplingOptions& sampling = options.sampling;
  // A number whose default `--help` shows.
  const auto add = [&command](const char* names, auto& value,
                              const char* help) {
    return command.add_option(names, value, help)->capture_default_str();
  };
  add("-n,--max-tokens", options.max_tokens, "Tokens to generate at most")
      ->check(CLI::Range(0, kMaxTokens));
  add("--temp,--temperature", sampling.temperature,
      "0: always the likeliest token");
  command.add_flag("--greedy", flags.greedy, "The same as --temp 0");
  add("--top-k", sampling.top_k, "Likeliest tokens kept; 0: all");
  add("--top-p", sampling.top_p,
      "Likeliest tokens that hold this probability together");
  add("--min-p", sampling.min_p,
      "Tokens at least this likely against the likeliest");
  add("--repetition-penalty", sampling.repetition_penalty,
      "Divides the logits of recent tokens; 1: none");
  add("--presence-penalty", sampling.presence_penalty,
      "Taken from the logits of recent tokens, once");
  add("--frequency-penalty", sampling.frequency_penalty,
      "Taken from the logits of recent tokens, for each time");
  add("--penalty-window", sampling.penalty_window,
      "Last tokens that count as recent");
  command.add_option("--logit-bias", flags.logit_bias,
                     "TOKEN=BIAS added to a logit; -inf forbids; may repeat");
  command.add_option("--seed", flags.seed,
                     "Same seed, same text; -1: another each time");
  command.add_option("--stop", options.stops,
                     "Stop before this text; may repeat");
  command.add_flag("--ignore-eos", options.ignore_end,
                   "Go on past the end of the text");
}

Result<GenerationOptions> ResolveGeneration(const GenerationFlags& flags) {
  GenerationOptions options = flags.options;
  runtime::SamplingOptions& sampling = options.sampling;
  if (flags.greedy) sampling.temperature = 0;
  sampling.seed = flags.seed >= 0 ? static_cast<uint64_t>(flags.seed)
                                  : std::random_device{}();
  for (const std::string& word : flags.logit_bias) {
    RETURN_IF_ERROR(UseLogitBias(word, sampling));
  }
  RETURN_IF_ERROR(runtime::Validate(sampling));
  return options;
}

}  // namespace muster::cli

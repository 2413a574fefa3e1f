#include "cli/generation.h"

#include <chrono>
#include <optional>

#include "cli/interrupt.h"
#include "tokenizer/stop_matcher.h"
#include "tokenizer/stream_decoder.h"

namespace muster::cli {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Tokens to text that may be shown.
class TextSink {
 public:
  TextSink(const tokenizer::Tokenizer* tokenizer,
           std::span<const int32_t> prompt, const GenerationOptions& options,
           const std::function<void(const std::string&)>& show)
      : stops_(options.stops), show_(show) {
    if (tokenizer != nullptr) decoder_.emplace(*tokenizer, prompt);
  }

  void Feed(int32_t token) {
    if (decoder_) Show(stops_.Feed(decoder_->Feed(token)));
  }

  void Finish() {
    if (!decoder_) return;
    Show(stops_.Feed(decoder_->Flush()));
    Show(stops_.Flush());
  }

  bool stopped() const { return stops_.stopped(); }
  const std::string& text() const { return text_; }

 private:
  void Show(const std::string& piece) {
    if (piece.empty()) return;
    text_ += piece;
    show_(piece);
  }

  std::optional<tokenizer::StreamDecoder> decoder_;
  tokenizer::StopMatcher stops_;
  const std::function<void(const std::string&)>& show_;
  std::string text_;
};

}  // namespace

Result<Generation> Generate(
    runtime::Engine& engine, const tokenizer::Tokenizer* tokenizer,
    std::span<const int32_t> prompt, const GenerationOptions& options,
    const std::function<void(const std::string&)>& show) {
  Generation out;
  runtime::Sampler sampler(options.sampling);
  for (const int32_t token : prompt) sampler.Accept(token);
  TextSink sink(tokenizer, prompt, options, show);

  const auto append = [&](std::span<const int32_t> tokens) {
    return options.recorder != nullptr ? options.recorder->Append(tokens)
                                       : engine.Append(tokens);
  };
  out.speeds.tiers_before = engine.tier_counters();
  const auto start = Clock::now();
  ASSIGN_OR_RETURN(std::span<float> logits, append(prompt));
  out.speeds.prompt_tokens = prompt.size();
  out.speeds.prompt_seconds = SecondsSince(start);
  out.speeds.tiers_after_prompt = engine.tier_counters();

  const auto generation_start = Clock::now();
  out.finish_reason = "length";
  while (out.tokens.size() < options.max_tokens) {
    const int32_t token = sampler.Sample(logits);
    if (tokenizer != nullptr && tokenizer->IsEndOfGeneration(token) &&
        !options.ignore_end) {
      out.finish_reason = "stop";
      break;
    }
    out.tokens.push_back(token);
    sampler.Accept(token);
    sink.Feed(token);
    if (sink.stopped()) {
      out.finish_reason = "stop";
      break;
    }
    if (InterruptGuard::Take()) {
      out.finish_reason = "interrupted";
      break;
    }
    if (out.tokens.size() == options.max_tokens ||
        engine.position() == engine.context_length()) {
      break;
    }
    ASSIGN_OR_RETURN(logits, append({&token, 1}));
  }
  sink.Finish();
  out.text = sink.text();
  out.speeds.generated_tokens = out.tokens.size();
  out.speeds.generation_seconds = SecondsSince(generation_start);
  return out;
}

}  // namespace muster::cli

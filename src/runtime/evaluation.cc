#include "runtime/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/check.h"
#include "runtime/sampler.h"

namespace muster::runtime {
namespace {

constexpr size_t kRowsAtOnce = 32;  // rows of logits that are kept

// Tokens [begin, end) are run; those from `first_scored` on are scored.
struct Window {
  size_t begin;
  size_t first_scored;
  size_t end;
};

std::vector<Window> Cut(size_t num_tokens, const Windows& windows) {
  std::vector<Window> cut;
  size_t scored_until = 1;  // the first token has nothing before it
  for (size_t begin = 0; scored_until < num_tokens; begin += windows.stride) {
    const size_t end = std::min(begin + windows.size, num_tokens);
    cut.push_back({begin, scored_until, end});
    scored_until = end;
  }
  return cut;
}

// Begins a window: the tokens that give context only, no logits needed.
Status BeginWindow(Engine& engine, std::span<const int32_t> tokens,
                   const Window& window) {
  engine.Rewind(0);
  const size_t context = window.first_scored - 1 - window.begin;
  if (context == 0) return {};
  return engine.Append(tokens.subspan(window.begin, context)).status();
}

// Walks all windows. `begin(window)` runs a window's context, `add(tokens,
// next)` scores some tokens by what truly follows each; both return a Status.
template <typename Begin, typename Add>
Status WalkWindows(std::span<const int32_t> tokens, const Windows& windows,
                   std::atomic<uint64_t>& done, const Begin& begin,
                   const Add& add) {
  for (const Window& window : Cut(tokens.size(), windows)) {
    RETURN_IF_ERROR(begin(window));
    // A token is scored by the logits of the one before it.
    for (size_t at = window.first_scored - 1; at + 1 < window.end;
         at += kRowsAtOnce) {
      const size_t count = std::min(kRowsAtOnce, window.end - 1 - at);
      RETURN_IF_ERROR(
          add(tokens.subspan(at, count), tokens.subspan(at + 1, count)));
      done = at + count + 1;
    }
  }
  return {};
}

}  // namespace

void Score::Add(const LogProbabilities& logs, int32_t next) {
  nats -= logs[static_cast<size_t>(next)];
  ++num_scored;
}

void Comparison::Add(std::span<const float> logits,
                     std::span<const float> reference_logits, int32_t next) {
  const LogProbabilities q(logits);
  const LogProbabilities p(reference_logits);
  score.Add(q, next);
  reference.Add(p, next);
  divergences.push_back(static_cast<float>(Divergence(p, q)));
  num_same_best += ArgMax(reference_logits) == ArgMax(logits);
}

double Score::perplexity() const { return std::exp(mean_nats()); }

double Score::BitsPerByte(size_t num_bytes) const {
  return nats / std::numbers::ln2 / static_cast<double>(num_bytes);
}

double Comparison::same_best_share() const {
  return static_cast<double>(num_same_best) /
         static_cast<double>(score.num_scored);
}

double Comparison::mean_divergence() const {
  return std::accumulate(divergences.begin(), divergences.end(), 0.0) /
         static_cast<double>(divergences.size());
}

float Comparison::DivergenceAt(double share) const {
  CHECK(share > 0 && share <= 1 && !divergences.empty());
  const auto rank = static_cast<size_t>(
      std::ceil(share * static_cast<double>(divergences.size())));
  std::vector<float> sorted = divergences;
  const auto nth = sorted.begin() + static_cast<ptrdiff_t>(rank - 1);
  std::nth_element(sorted.begin(), nth, sorted.end());
  return *nth;
}

Result<Score> ScoreTokens(Engine& engine, std::span<const int32_t> tokens,
                          const Windows& windows, std::atomic<uint64_t>& done) {
  const size_t vocab = engine.model().config.vocab_size;
  Score score;
  const auto begin = [&](const Window& window) {
    return BeginWindow(engine, tokens, window);
  };
  const auto add = [&](std::span<const int32_t> piece,
                       std::span<const int32_t> next) -> Status {
    ASSIGN_OR_RETURN(const auto logits, engine.AppendForAllLogits(piece));
    for (size_t i = 0; i < piece.size(); ++i) {
      score.Add(LogProbabilities(logits.subspan(i * vocab, vocab)), next[i]);
    }
    return {};
  };
  RETURN_IF_ERROR(WalkWindows(tokens, windows, done, begin, add));
  return score;
}

Result<Comparison> CompareTokens(Engine& engine, Engine& reference,
                                 std::span<const int32_t> tokens,
                                 const Windows& windows,
                                 std::atomic<uint64_t>& done) {
  const size_t vocab = engine.model().config.vocab_size;
  if (reference.model().config.vocab_size != vocab) {
    return InvalidArgument(fmt::format(
        "the model has a vocabulary of {}, the reference one of {}: expected "
        "the same tokens",
        vocab, reference.model().config.vocab_size));
  }
  Comparison comparison;
  comparison.divergences.reserve(tokens.size());
  const auto begin = [&](const Window& window) -> Status {
    RETURN_IF_ERROR(BeginWindow(engine, tokens, window));
    return BeginWindow(reference, tokens, window);
  };
  const auto add = [&](std::span<const int32_t> piece,
                       std::span<const int32_t> next) -> Status {
    ASSIGN_OR_RETURN(const auto ours, engine.AppendForAllLogits(piece));
    ASSIGN_OR_RETURN(const auto theirs, reference.AppendForAllLogits(piece));
    for (size_t i = 0; i < piece.size(); ++i) {
      comparison.Add(ours.subspan(i * vocab, vocab),
                     theirs.subspan(i * vocab, vocab), next[i]);
    }
    return {};
  };
  RETURN_IF_ERROR(WalkWindows(tokens, windows, done, begin, add));
  return comparison;
}

}  // namespace muster::runtime

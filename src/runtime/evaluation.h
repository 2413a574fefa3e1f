// How well a model predicts a text, alone and beside a reference.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "runtime/engine.h"
#include "runtime/log_probabilities.h"

namespace muster::runtime {

// Windows of `size` tokens that move on by `stride`: each token but the first
// is scored once, with at least size - stride tokens before it, except in the
// first window.
struct Windows {
  size_t size = 0;    // REQUIRES: 2 <= size <= the engine's context
  size_t stride = 0;  // REQUIRES: 1 <= stride < size
};

struct Score {
  size_t num_scored = 0;
  double nats = 0;  // surprise at the scored tokens together

  // What truly came next was `next`.
  void Add(const LogProbabilities& logs, int32_t next);

  double mean_nats() const { return nats / static_cast<double>(num_scored); }
  double perplexity() const;
  // Of all bytes of the text, although a first token without a predecessor is
  // not scored: it is one of thousands.
  double BitsPerByte(size_t num_bytes) const;
};

// Two models on the same tokens of the same windows.
struct Comparison {
  Score score;
  Score reference;
  // KL of the model's next-token distribution from the reference's, in nats,
  // for each scored token.
  std::vector<float> divergences;
  size_t num_same_best = 0;  // where both find the same token likeliest

  // What both say of the next token, [vocab_size] each, and what it was.
  void Add(std::span<const float> logits,
           std::span<const float> reference_logits, int32_t next);

  double mean_divergence() const;
  double same_best_share() const;
  // The smallest divergence that `share` of the tokens do not exceed; 1: the
  // largest. REQUIRES: 0 < share <= 1 and something was scored.
  float DivergenceAt(double share) const;
};

// Both forget what the engine had and count in `done` the tokens behind them.
// Block. Fail as Engine::Append does. REQUIRES: at least 2 tokens.
Result<Score> ScoreTokens(Engine& engine, std::span<const int32_t> tokens,
                          const Windows& windows, std::atomic<uint64_t>& done);

// Fails with kInvalidArgument when the vocabularies differ in size, too.
Result<Comparison> CompareTokens(Engine& engine, Engine& reference,
                                 std::span<const int32_t> tokens,
                                 const Windows& windows,
                                 std::atomic<uint64_t>& done);

}  // namespace muster::runtime

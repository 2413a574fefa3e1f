// From logits to the next token.
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/status.h"

namespace muster::runtime {

// Steps run in this order: bias, penalties, then (unless greedy) top-k, top-p,
// min-p, temperature, draw: the order that llama.cpp takes.
struct SamplingOptions {
  float temperature = 0.8f;  // 0: greedy, the largest logit, ties to lowest id
  uint32_t top_k = 40;       // 0: all
  float top_p = 0.95f;       // 1: all
  float min_p = 0.05f;       // 0: all
  float repetition_penalty = 1.0f;  // divides positive logits; 1: none
  float presence_penalty = 0.0f;    // subtracted once if the token occurred
  float frequency_penalty = 0.0f;   // subtracted per occurrence
  uint32_t penalty_window = 64;     // last tokens that count; 0: none
  std::unordered_map<int32_t, float> logit_bias;  // added; -inf forbids
  uint64_t seed = 0;
};

// Fails with what is out of range, NaN included.
Status Validate(const SamplingOptions& options);

// The same options and the same logits give the same tokens, on any machine.
// One thread at a time.
class Sampler {
 public:
  // REQUIRES: Validate(options).ok().
  explicit Sampler(SamplingOptions options);

  // Tells a token that is in the text already (prompt tokens too).
  void Accept(int32_t token);

  // Chooses; the caller Accepts what it keeps. Changes `logits` [vocab_size].
  // NaN counts as -inf.
  int32_t Sample(std::span<float> logits);

 private:
  struct Candidate {
    int32_t token;
    float logit;
    double probability;
  };

  void ApplyBiasAndPenalties(std::span<float> logits) const;
  void KeepTopK(std::span<const float> logits);
  void KeepTopP();
  void KeepMinP();
  int32_t Draw();
  void SetProbabilities(double temperature);

  SamplingOptions options_;
  std::deque<int32_t> recent_;
  std::unordered_map<int32_t, uint32_t> recent_counts_;
  std::mt19937_64 random_;
  std::vector<Candidate> candidates_;  // by falling logit, ties to lowest id
};

// The token of the largest logit; ties to the lowest id. NaN counts as -inf.
// REQUIRES: logits is not empty.
int32_t ArgMax(std::span<const float> logits);

}  // namespace muster::runtime

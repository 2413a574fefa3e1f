// What rows of logits say about the next token.
#pragma once

#include <cstddef>
#include <span>

namespace muster::runtime {

// ln softmax(logits) in double, as a view: the logits must outlive it.
class LogProbabilities {
 public:
  explicit LogProbabilities(std::span<const float> logits);  // [vocab_size]

  size_t size() const { return logits_.size(); }
  double operator[](size_t token) const {
    return logits_[token] - most_ - log_sum_;
  }

 private:
  std::span<const float> logits_;
  double most_;     // the largest logit
  double log_sum_;  // ln sum exp(logit - most)
};

// KL(p || q) = sum over tokens of p (ln p - ln q), in nats: what believing q
// costs where p is true. Exactly 0 for equal logits; a rounding below 0 is
// returned as 0. REQUIRES: p.size() == q.size().
double Divergence(const LogProbabilities& p, const LogProbabilities& q);

}  // namespace muster::runtime

#include "runtime/log_probabilities.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace muster::runtime {

LogProbabilities::LogProbabilities(std::span<const float> logits)
    : logits_(logits), most_(*std::max_element(logits.begin(), logits.end())) {
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - most_);
  log_sum_ = std::log(sum);
}

double Divergence(const LogProbabilities& p, const LogProbabilities& q) {
  CHECK_EQ(p.size(), q.size());
  double divergence = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    divergence += std::exp(p[i]) * (p[i] - q[i]);
  }
  return std::max(0.0, divergence);
}

}  // namespace muster::runtime

#include "runtime/token_chances.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "runtime/log_probabilities.h"

namespace muster::runtime {

TokenChances ChancesOf(std::span<const float> logits, int32_t token,
                       size_t num_top) {
  CHECK_LT(static_cast<size_t>(token), logits.size());
  const LogProbabilities log_probabilities(logits);
  TokenChances chances;
  chances.chosen = {token, log_probabilities[static_cast<size_t>(token)]};
  num_top = std::min(num_top, logits.size());
  if (num_top == 0) return chances;
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::partial_sort(ids.begin(),
                    ids.begin() + static_cast<std::ptrdiff_t>(num_top),
                    ids.end(), [&](int32_t a, int32_t b) {
                      const float x = logits[static_cast<size_t>(a)];
                      const float y = logits[static_cast<size_t>(b)];
                      return x != y ? x > y : a < b;
                    });
  for (size_t i = 0; i < num_top; ++i) {
    const auto id = static_cast<size_t>(ids[i]);
    chances.top.push_back({ids[i], log_probabilities[id]});
  }
  return chances;
}

}  // namespace muster::runtime

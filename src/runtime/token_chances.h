// What the model gave to a token, and which it held likeliest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::runtime {

struct TokenChance {
  int32_t token = 0;
  double log_probability = 0;  // ln of the softmax of the raw logits
};

struct TokenChances {
  TokenChance chosen;
  std::vector<TokenChance> top;  // the likeliest first, ties to the lowest id
};

// Before bias, penalties or any other change.   logits: [vocab_size]
// REQUIRES: 0 <= token < vocab_size. At most vocab_size of `num_top` are there.
TokenChances ChancesOf(std::span<const float> logits, int32_t token,
                       size_t num_top);

}  // namespace muster::runtime

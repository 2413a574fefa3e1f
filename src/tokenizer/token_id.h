// A token's number in one model's vocabulary.
#pragma once

#include <cstdint>

namespace muster::tokenizer {

using TokenId = int32_t;

inline constexpr TokenId kNoToken = -1;

}  // namespace muster::tokenizer

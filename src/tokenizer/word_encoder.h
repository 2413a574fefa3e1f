// The model proper of a tokenizer: one word to ids.
#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "tokenizer/spec.h"
#include "tokenizer/token_id.h"

namespace muster::tokenizer {

// Immutable, thread-safe. Any bytes may come; time is at most n log n.
class WordEncoder {
 public:
  virtual ~WordEncoder() = default;
  // Appends the ids of `word`.
  virtual void Encode(std::string_view word,
                      std::vector<TokenId>& out) const = 0;
};

// Text to id for the tokens that words may become: control, unknown and byte
// tokens are not among them (CASES K03). The strings live in the spec.
using WordTable = std::unordered_map<std::string_view, TokenId>;
WordTable MakeWordTable(const TokenizerSpec& spec);

// All borrow `spec`, which must outlive them.
Result<std::unique_ptr<WordEncoder>> MakeRankEncoder(const TokenizerSpec& spec);
Result<std::unique_ptr<WordEncoder>> MakeScoreEncoder(
    const TokenizerSpec& spec);
Result<std::unique_ptr<WordEncoder>> MakeUnigramEncoder(
    const TokenizerSpec& spec);

}  // namespace muster::tokenizer

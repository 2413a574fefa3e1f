// Tokens that are looked for in the text itself, before anything else: control
// tokens ("<|im_start|>") and those that the model's makers added whole.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/regex.h"
#include "tokenizer/spec.h"
#include "tokenizer/trie.h"

namespace muster::tokenizer {

// Either a token or text between tokens.
struct Section {
  std::string_view text;
  TokenId token = kNoToken;
};

// Immutable, thread-safe.
class AddedTokens {
 public:
  struct Entry {
    AddedToken token;
    std::string text;
    bool is_control = false;
  };

  AddedTokens() = default;
  explicit AddedTokens(std::vector<Entry> entries);

  bool empty() const { return entries_.empty(); }

  // Cuts `text`: from the left, at each place the longest token. Control tokens
  // only within one of `control_allowed` (in order, not touching).
  std::vector<Section> Split(std::string_view text,
                             std::span<const Span> control_allowed) const;

 private:
  struct Match {
    const Entry* entry = nullptr;
    size_t size = 0;
  };

  Match LongestAt(std::string_view text, size_t pos, size_t control_end) const;

  std::vector<Entry> entries_;
  Trie trie_;  // text to index in entries_
};

}  // namespace muster::tokenizer

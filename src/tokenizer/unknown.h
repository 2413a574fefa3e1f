// What becomes of a character that the vocabulary does not have.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/spec.h"
#include "tokenizer/token_id.h"

namespace muster::tokenizer {

// "<0x0A>" to the byte 10; nullopt for other texts.
std::optional<char> ByteOfToken(std::string_view text);

// Immutable, thread-safe.
class UnknownCharacters {
 public:
  explicit UnknownCharacters(const TokenizerSpec& spec);

  // Appends the byte tokens of `character`, else the unknown token, else
  // nothing: there is no way to say it. Returns whether it was unknown.
  // `after_unknown`: what this returned for the symbol before; models that fuse
  // unknown characters have one token for neighbours.
  bool Append(std::string_view character, bool after_unknown,
              std::vector<TokenId>& out) const;

 private:
  bool HasAllBytes(std::string_view text) const;

  std::array<TokenId, 256> bytes_;  // kNoToken: none for this byte
  TokenId unknown_;
  bool fuse_;
};

}  // namespace muster::tokenizer

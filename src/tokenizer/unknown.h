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

  // Appends the byte tokens of `character`, else the unknown token (only one
  // for neighbours, where the model fuses them: `after_unknown` says that the
  // symbol before was unknown, too), else nothing: there is no way to say it.
  void Append(std::string_view character, bool after_unknown,
              std::vector<TokenId>& out) const;

 private:
  bool HasAllBytes(std::string_view text) const;

  std::array<TokenId, 256> bytes_;  // kNoToken: none for this byte
  TokenId unknown_;
  bool fuse_;
};

}  // namespace muster::tokenizer

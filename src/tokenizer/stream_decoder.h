// Token ids to text, token by token, for showing text while it is generated.
#pragma once

#include <span>
#include <string>

#include "tokenizer/tokenizer.h"

namespace muster::tokenizer {

// All text returned is valid UTF-8: a character whose bytes come in several
// tokens is held back until it is whole, bytes that can become no character
// come out as U+FFFD. Control tokens give no text. One thread at a time; the
// tokenizer must outlive it.
class StreamDecoder {
 public:
  // `context`: what was fed to the model before. Where it ends in text, a first
  // space is a part of the text; else SentencePiece's first space is dropped.
  explicit StreamDecoder(const Tokenizer& tokenizer,
                         std::span<const TokenId> context = {});

  std::string Feed(TokenId id);

  // What was held back: the text ends here. The decoder is then as new, in the
  // middle of a text.
  std::string Flush();

 private:
  const Tokenizer& tokenizer_;
  bool at_start_ = true;
  std::string held_;  // the start of a character: at most 3 bytes
};

}  // namespace muster::tokenizer

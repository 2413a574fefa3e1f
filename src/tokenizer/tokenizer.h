// Text to token ids and back, as the model was trained.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "formats/model_files.h"
#include "tokenizer/spec.h"
#include "tokenizer/token_id.h"

namespace muster::tokenizer {

struct EncodeOptions {
  // Puts the model's own BOS/EOS (or what it has instead) round the text, if
  // the model file says so. Never twice: a text that already begins with them
  // is left as it is.
  bool add_bos_eos = true;
  // Reads "<|im_start|>" as the control token. Off, such text is plain text;
  // never switch it on for what a user wrote.
  bool parse_special = false;
};

// A stretch of a prompt: from the chat template (control tokens are read) or
// from a user (they are not).
struct TextPiece {
  std::string_view text;
  bool parse_special = false;
};

// Immutable and thread-safe. Any bytes may be encoded: what is not UTF-8 goes
// in byte by byte where the vocabulary has bytes, else as unknown.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  virtual std::vector<TokenId> Encode(std::string_view text,
                                      EncodeOptions options) const = 0;
  std::vector<TokenId> Encode(std::string_view text) const {
    return Encode(text, EncodeOptions{});
  }

  // As if the texts of `pieces` were one text in which control tokens are only
  // found inside pieces that allow it: a word may reach over a border.
  virtual std::vector<TokenId> EncodePieces(std::span<const TextPiece> pieces,
                                            bool add_bos_eos) const = 0;

  // The text of `ids`, control tokens left out. Bytes that are not UTF-8 come
  // out as they are; see stream_decoder.h for text that is always valid.
  virtual std::string Decode(std::span<const TokenId> ids) const = 0;

  // What the token adds to a text; for a control token, how it is written.
  // Empty for an id outside the vocabulary. Valid while this object lives.
  virtual std::string_view TokenBytes(TokenId id) const = 0;

  // The token written like that in the model file, control tokens included, or
  // kNoToken.
  virtual TokenId FindToken(std::string_view text) const = 0;

  // All false for an id outside the vocabulary.
  virtual bool IsControl(TokenId id) const = 0;
  virtual bool IsEndOfGeneration(TokenId id) const = 0;

  virtual size_t vocab_size() const = 0;
  virtual TokenId bos() const = 0;  // kNoToken: the model has none
  virtual TokenId eos() const = 0;
  virtual const std::string& name() const = 0;
  // SentencePiece models: the first space of a decoded text is no part of it.
  virtual bool strips_first_space() const = 0;
  // For a person to read: guesses that had to be made. Mostly empty.
  virtual const std::vector<std::string>& warnings() const = 0;
};

// Fails with kCorrupt where the spec contradicts itself, kUnsupported where a
// pattern cannot be compiled.
Result<std::unique_ptr<Tokenizer>> MakeTokenizer(TokenizerSpec spec);

// kNotFound: the model carries no tokenizer.
Result<std::unique_ptr<Tokenizer>> LoadTokenizer(
    const formats::ModelFiles& files);

}  // namespace muster::tokenizer

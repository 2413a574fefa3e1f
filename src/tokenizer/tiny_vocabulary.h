// Small vocabularies made for tests and fuzzing.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/end_of_generation.h"
#include "tokenizer/pre_tokenizer_table.h"
#include "tokenizer/spec.h"

namespace muster::tokenizer {

// Ids 0 to 255 are the bytes.
class TinyByteLevel {
 public:
  explicit TinyByteLevel(std::string_view pre_tokenizer = "qwen2") {
    spec_.name = pre_tokenizer;
    spec_.byte_level = true;
    spec_.pre_tokenizer = StepsOf(*FindPreTokenizer(pre_tokenizer));
    for (int byte = 0; byte < 256; ++byte) {
      Add(std::string(1, static_cast<char>(byte)), TokenKind::kNormal);
    }
  }

  TokenId Add(std::string text, TokenKind kind) {
    spec_.tokens.push_back(std::move(text));
    spec_.kinds.push_back(kind);
    return static_cast<TokenId>(spec_.tokens.size() - 1);
  }

  // A token that is looked for in texts.
  TokenId AddSpecial(std::string text, TokenKind kind) {
    const TokenId id = Add(std::move(text), kind);
    spec_.added.push_back({.id = id});
    return id;
  }

  TokenId Merge(TokenId left, TokenId right) {
    const auto text = [&](TokenId id) {
      return spec_.tokens[static_cast<size_t>(id)];
    };
    const TokenId id = Add(text(left) + text(right), TokenKind::kNormal);
    spec_.merges.push_back({.left = left, .right = right, .result = id});
    return id;
  }

  // Merges the bytes of `text` from the left, then `doublings` times what came
  // out with itself.
  TokenId MergeAll(std::string_view text, int doublings) {
    TokenId id = Byte(text[0]);
    for (const char c : text.substr(1)) id = Merge(id, Byte(c));
    for (int i = 0; i < doublings; ++i) id = Merge(id, id);
    return id;
  }

  static TokenId Byte(char c) { return static_cast<unsigned char>(c); }

  TokenizerSpec& spec() { return spec_; }

 private:
  TokenizerSpec spec_;
};

// As SentencePiece models are: <unk> <s> </s>, 256 byte tokens, then `words`
// with their scores.
inline TokenizerSpec TinySentencePiece(
    Algorithm algorithm,
    const std::vector<std::pair<std::string, float>>& words) {
  TokenizerSpec spec;
  spec.name = "tiny";
  spec.algorithm = algorithm;
  spec.byte_fallback = true;
  spec.metaspace = true;
  spec.prefix_after_special = true;
  spec.strip_first_space = true;
  spec.normalizer = {{.kind = NormalizerKind::kReplace,
                      .pattern = " ",
                      .content = "\xE2\x96\x81"}};
  const auto add = [&](std::string text, TokenKind kind, float score) {
    spec.tokens.push_back(std::move(text));
    spec.kinds.push_back(kind);
    spec.scores.push_back(score);
  };
  add("<unk>", TokenKind::kUnknown, 0);
  add("<s>", TokenKind::kControl, 0);
  add("</s>", TokenKind::kControl, 0);
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (size_t byte = 0; byte < 256; ++byte) {
    const std::string digits = {kHex[byte / 16], kHex[byte % 16]};
    add("<0x" + digits + ">", TokenKind::kByte, 0);
  }
  for (const auto& [text, score] : words) add(text, TokenKind::kNormal, score);
  spec.unknown = 0;
  spec.bos = 1;
  spec.eos = 2;
  spec.prefix = {1};
  spec.added = {{.id = 0}, {.id = 1}, {.id = 2}};
  AddKnownEnds(spec);
  return spec;
}

}  // namespace muster::tokenizer

#include "tokenizer/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <unordered_map>

#include "tokenizer/added_tokens.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/unicode.h"
#include "tokenizer/unknown.h"
#include "tokenizer/word_encoder.h"

namespace muster::tokenizer {
namespace {

bool IsControlKind(TokenKind kind) {
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

std::string WithSpaces(std::string_view text) {
  std::string out;
  for (size_t pos = 0; pos < text.size();) {
    const bool is_space = text.substr(pos).starts_with(kSpaceMark);
    out.push_back(is_space ? ' ' : text[pos]);
    pos += is_space ? kSpaceMark.size() : 1;
  }
  return out;
}

// What each token adds to a text.
std::vector<std::string> DecodedTokens(const TokenizerSpec& spec) {
  std::vector<std::string> decoded(spec.tokens.size());
  for (size_t id = 0; id < decoded.size(); ++id) {
    const std::string& token = spec.tokens[id];
    const auto byte = ByteOfToken(token);
    if (spec.kinds[id] == TokenKind::kByte && byte) {
      decoded[id] = *byte;
    } else {
      decoded[id] = spec.metaspace ? WithSpaces(token) : token;
    }
  }
  return decoded;
}

class TokenizerImpl final : public Tokenizer {
 public:
  // `added` are looked for in the text as it comes, `added_normalized` after
  // normalization.
  TokenizerImpl(std::unique_ptr<const TokenizerSpec> spec,
                Normalizer normalizer, PreTokenizer pre_tokenizer,
                std::unique_ptr<WordEncoder> encoder, AddedTokens added,
                AddedTokens added_normalized)
      : spec_(std::move(spec)),
        normalizer_(std::move(normalizer)),
        pre_tokenizer_(std::move(pre_tokenizer)),
        encoder_(std::move(encoder)),
        added_(std::move(added)),
        added_normalized_(std::move(added_normalized)),
        decoded_(DecodedTokens(*spec_)),
        is_end_(spec_->tokens.size(), false) {
    for (size_t id = 0; id < spec_->tokens.size(); ++id) {
      by_text_.emplace(spec_->tokens[id], static_cast<TokenId>(id));
    }
    // A control token is what its text means, whatever else is written so.
    for (size_t id = 0; id < spec_->tokens.size(); ++id) {
      if (IsControlKind(spec_->kinds[id])) {
        by_text_[spec_->tokens[id]] = static_cast<TokenId>(id);
      }
    }
    for (const TokenId id : spec_->end_of_generation) is_end_[Index(id)] = true;
  }

  using Tokenizer::Encode;
  std::vector<TokenId> Encode(std::string_view text,
                              EncodeOptions options) const override {
    const TextPiece piece{.text = text, .parse_special = options.parse_special};
    return EncodePieces({&piece, 1}, options.add_bos_eos);
  }

  std::vector<TokenId> EncodePieces(std::span<const TextPiece> pieces,
                                    bool add_bos_eos) const override {
    std::string text;
    std::vector<Span> control_allowed;
    for (const TextPiece& piece : pieces) {
      const size_t begin = text.size();
      text += piece.text;
      if (!piece.parse_special || piece.text.empty()) continue;
      if (!control_allowed.empty() && control_allowed.back().end == begin) {
        control_allowed.back().end = text.size();
      } else {
        control_allowed.push_back({begin, text.size()});
      }
    }
    std::vector<TokenId> ids;
    bool is_first = true;
    bool after_token = true;
    for (const Section& section : added_.Split(text, control_allowed)) {
      after_token = EncodeSection(section, is_first, after_token, ids);
      is_first = false;
    }
    if (add_bos_eos) Surround(ids);
    return ids;
  }

  std::string Decode(std::span<const TokenId> ids) const override {
    std::string text;
    for (const TokenId id : ids) {
      if (!IsControl(id)) text += TokenBytes(id);
    }
    const bool strip = strips_first_space() && text.starts_with(' ');
    return strip ? text.substr(1) : text;
  }

  std::string_view TokenBytes(TokenId id) const override {
    if (!IsToken(id)) return {};
    return decoded_[Index(id)];
  }

  TokenId FindToken(std::string_view text) const override {
    const auto it = by_text_.find(text);
    return it == by_text_.end() ? kNoToken : it->second;
  }

  bool IsControl(TokenId id) const override {
    return IsToken(id) && IsControlKind(spec_->kinds[Index(id)]);
  }
  bool IsEndOfGeneration(TokenId id) const override {
    return IsToken(id) && is_end_[Index(id)];
  }

  size_t vocab_size() const override { return spec_->tokens.size(); }
  TokenId bos() const override { return spec_->bos; }
  TokenId eos() const override { return spec_->eos; }
  const std::string& name() const override { return spec_->name; }
  bool strips_first_space() const override { return spec_->strip_first_space; }
  const std::vector<std::string>& warnings() const override {
    return spec_->warnings;
  }

 private:
  static size_t Index(TokenId id) { return static_cast<size_t>(id); }
  bool IsToken(TokenId id) const {
    return id >= 0 && Index(id) < spec_->tokens.size();
  }

  // Returns whether the section was a token.
  bool EncodeSection(const Section& section, bool is_first, bool after_token,
                     std::vector<TokenId>& ids) const {
    if (section.token != kNoToken) {
      ids.push_back(section.token);
      return true;
    }
    std::string text = normalizer_.Apply(section.text);
    if (spec_->prefix_after_special && after_token && !text.empty()) {
      text.insert(0, kSpaceMark);
    }
    // Here no control token is found any more.
    for (const Section& part : added_normalized_.Split(text, {})) {
      if (part.token != kNoToken) {
        ids.push_back(part.token);
      } else {
        EncodeText(part.text, is_first, ids);
      }
      is_first = false;
    }
    return false;
  }

  void EncodeText(std::string_view text, bool is_first,
                  std::vector<TokenId>& ids) const {
    const Words words = pre_tokenizer_.Split(text, is_first);
    for (const std::string_view word : words.views()) {
      encoder_->Encode(word, ids);
    }
  }

  void Surround(std::vector<TokenId>& ids) const {
    const auto& [prefix, suffix] = std::tie(spec_->prefix, spec_->suffix);
    const bool has_prefix =
        ids.size() >= prefix.size() &&
        std::equal(prefix.begin(), prefix.end(), ids.begin());
    if (!has_prefix) ids.insert(ids.begin(), prefix.begin(), prefix.end());
    const bool has_suffix =
        ids.size() >= suffix.size() &&
        std::equal(suffix.rbegin(), suffix.rend(), ids.rbegin());
    if (!has_suffix) ids.insert(ids.end(), suffix.begin(), suffix.end());
  }

  std::unique_ptr<const TokenizerSpec> spec_;  // borrowed by encoder_
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  std::unique_ptr<WordEncoder> encoder_;
  AddedTokens added_;
  AddedTokens added_normalized_;
  std::vector<std::string> decoded_;
  std::vector<bool> is_end_;
  std::unordered_map<std::string_view, TokenId> by_text_;
};

Status CheckSpec(const TokenizerSpec& spec) {
  if (spec.tokens.empty()) return Corrupt("the vocabulary is empty");
  if (spec.kinds.size() != spec.tokens.size()) {
    return Corrupt(fmt::format("the vocabulary has {} tokens and {} types",
                               spec.tokens.size(), spec.kinds.size()));
  }
  const auto is_bad = [&](TokenId id) {
    return id < 0 || static_cast<size_t>(id) >= spec.tokens.size();
  };
  const auto error = [&](std::string_view what, TokenId id) {
    return Corrupt(
        fmt::format("{} is token {}, but the vocabulary has {} tokens", what,
                    id, spec.tokens.size()));
  };
  const std::array<std::pair<std::string_view, TokenId>, 4> single = {
      {{"the BOS token", spec.bos},
       {"the EOS token", spec.eos},
       {"the unknown token", spec.unknown},
       {"the padding token", spec.pad}}};
  for (const auto& [what, id] : single) {
    if (id != kNoToken && is_bad(id)) return error(what, id);
  }
  for (const auto* ids :
       {&spec.prefix, &spec.suffix, &spec.end_of_generation}) {
    for (const TokenId id : *ids) {
      if (is_bad(id)) return error("a token round a text", id);
    }
  }
  for (const AddedToken& added : spec.added) {
    if (is_bad(added.id)) return error("an added token", added.id);
  }
  return {};
}

Result<std::unique_ptr<WordEncoder>> MakeEncoder(const TokenizerSpec& spec) {
  switch (spec.algorithm) {
    case Algorithm::kMergeRanks:
      return MakeRankEncoder(spec);
    case Algorithm::kMergeScores:
      return MakeScoreEncoder(spec);
    case Algorithm::kUnigram:
      return MakeUnigramEncoder(spec);
  }
  return Unsupported("an unknown algorithm");
}

// Control tokens are looked for in the text as it came, normalized or not:
// later nobody would know who wrote which character.
bool IsLookedForLater(const AddedTokens::Entry& entry,
                      const Normalizer& normalizer) {
  return entry.token.normalized && !entry.is_control && !normalizer.empty();
}

}  // namespace

WordTable MakeWordTable(const TokenizerSpec& spec) {
  WordTable words;
  words.reserve(spec.tokens.size());
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (IsControlKind(spec.kinds[id])) continue;
    if (spec.kinds[id] == TokenKind::kByte) continue;
    if (spec.tokens[id].empty()) continue;
    words.emplace(spec.tokens[id], static_cast<TokenId>(id));
  }
  return words;
}

Result<std::unique_ptr<Tokenizer>> MakeTokenizer(TokenizerSpec spec_value) {
  RETURN_IF_ERROR(CheckSpec(spec_value));
  auto spec = std::make_unique<const TokenizerSpec>(std::move(spec_value));
  ASSIGN_OR_RETURN(auto normalizer, Normalizer::Make(spec->normalizer));
  ASSIGN_OR_RETURN(auto pre_tokenizer, PreTokenizer::Make(spec->pre_tokenizer));
  ASSIGN_OR_RETURN(auto encoder, MakeEncoder(*spec));
  std::vector<AddedTokens::Entry> raw;
  std::vector<AddedTokens::Entry> normalized;
  for (const AddedToken& added : spec->added) {
    const auto index = static_cast<size_t>(added.id);
    AddedTokens::Entry entry{.token = added,
                             .text = spec->tokens[index],
                             .is_control = IsControlKind(spec->kinds[index])};
    if (IsLookedForLater(entry, normalizer)) {
      entry.text = normalizer.Apply(entry.text);
      normalized.push_back(std::move(entry));
    } else {
      raw.push_back(std::move(entry));
    }
  }
  return std::unique_ptr<Tokenizer>(std::make_unique<TokenizerImpl>(
      std::move(spec), std::move(normalizer), std::move(pre_tokenizer),
      std::move(encoder), AddedTokens(std::move(raw)),
      AddedTokens(std::move(normalized))));
}

}  // namespace muster::tokenizer

#include "tokenizer/gguf_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/end_of_generation.h"
#include "tokenizer/pre_tokenizer_table.h"
#include "tokenizer/unicode.h"

namespace muster::tokenizer {
namespace {

using formats::Metadata;

// What the key says when it is there.
Result<bool> BoolOr(const Metadata& metadata, std::string_view key,
                    bool otherwise) {
  ASSIGN_OR_RETURN(const auto value, metadata.GetBool(key));
  return value.value_or(otherwise);
}

Result<TokenId> IdOr(const Metadata& metadata, std::string_view key,
                     TokenId otherwise, size_t num_tokens) {
  ASSIGN_OR_RETURN(const auto value, metadata.GetUint(key));
  if (!value) {
    const bool exists =
        otherwise >= 0 && static_cast<size_t>(otherwise) < num_tokens;
    return exists ? otherwise : kNoToken;
  }
  if (*value < num_tokens) return static_cast<TokenId>(*value);
  // Written by converters where a model has no such token.
  if (*value == UINT32_MAX) return kNoToken;
  return Corrupt(fmt::format("key '{}' is {}, but there are {} tokens", key,
                             *value, num_tokens));
}

Status ReadKinds(const Metadata& metadata, TokenizerSpec& spec) {
  spec.kinds.assign(spec.tokens.size(), TokenKind::kNormal);
  ASSIGN_OR_RETURN(const auto types,
                   metadata.GetInts("tokenizer.ggml.token_type"));
  if (!types) return {};
  if (types->size() != spec.tokens.size()) {
    return Corrupt(fmt::format(
        "tokenizer.ggml.token_type has {} entries, expected {}: one per token",
        types->size(), spec.tokens.size()));
  }
  for (size_t id = 0; id < types->size(); ++id) {
    const int64_t type = (*types)[id];
    if (type >= 1 && type <= 6) spec.kinds[id] = static_cast<TokenKind>(type);
  }
  return {};
}

Status ReadScores(const Metadata& metadata, TokenizerSpec& spec) {
  const std::string_view key = "tokenizer.ggml.scores";
  if (!metadata.Has(key)) {
    return Corrupt(fmt::format("there is no '{}'", key));
  }
  // Integers occur, too.
  const auto* value = metadata.Find(key);
  if (std::holds_alternative<std::vector<double>>(*value)) {
    const auto& scores = std::get<std::vector<double>>(*value);
    spec.scores.assign(scores.size(), 0);
    std::ranges::transform(scores, spec.scores.begin(), [](double score) {
      return static_cast<float>(score);
    });
  } else {
    ASSIGN_OR_RETURN(const auto scores, metadata.GetInts(key));
    for (const int64_t score : scores.value_or(std::vector<int64_t>())) {
      spec.scores.push_back(static_cast<float>(score));
    }
  }
  if (spec.scores.size() != spec.tokens.size()) {
    return Corrupt(
        fmt::format("'{}' has {} entries, expected {}: one per token", key,
                    spec.scores.size(), spec.tokens.size()));
  }
  return {};
}

Status ReadMerges(const Metadata& metadata,
                  const std::vector<std::string>& tokens, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(const auto* merges,
                   metadata.GetStrings("tokenizer.ggml.merges"));
  if (merges == nullptr) return Corrupt("there is no 'tokenizer.ggml.merges'");
  std::unordered_map<std::string_view, TokenId> ids;
  ids.reserve(tokens.size());
  for (size_t id = 0; id < tokens.size(); ++id) {
    ids.emplace(tokens[id], static_cast<TokenId>(id));
  }
  const auto find = [&](std::string_view text) {
    const auto it = ids.find(text);
    return it == ids.end() ? kNoToken : it->second;
  };
  spec.merges.reserve(merges->size());
  for (size_t i = 0; i < merges->size(); ++i) {
    const std::string& merge = (*merges)[i];
    // From 1: the left side may be a space itself where spaces are not encoded.
    const size_t space = merge.find(' ', 1);
    if (space == std::string::npos) {
      return Corrupt(
          fmt::format("merge {} is '{}', expected two tokens and a "
                      "space between them",
                      i, merge));
    }
    const std::string left = merge.substr(0, space);
    const std::string right = merge.substr(space + 1);
    const Merge found{
        .left = find(left), .right = find(right), .result = find(left + right)};
    if (found.left == kNoToken || found.right == kNoToken ||
        found.result == kNoToken) {
      return Corrupt(
          fmt::format("merge {} is '{}', which names no token", i, merge));
    }
    spec.merges.push_back(found);
  }
  return {};
}

Result<const PreTokenizerRow*> ReadPreTokenizer(const Metadata& metadata,
                                                TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(auto name, metadata.GetString("tokenizer.ggml.pre"));
  if (!name) {
    spec.warnings.push_back(
        "the file does not say how its tokenizer cuts words "
        "(tokenizer.ggml.pre): a default is used, and answers may be worse "
        "than the model's. Convert the model again to be sure.");
  }
  spec.name = name.value_or("default");
  const PreTokenizerRow* row = FindPreTokenizer(spec.name);
  if (row == nullptr) {
    return Unsupported(fmt::format(
        "tokenizer.ggml.pre is '{}', which this version does not know. "
        "Guessing "
        "how words are cut would make the model worse without a sign of it",
        spec.name));
  }
  spec.pre_tokenizer = StepsOf(*row);
  if (row->nfc) spec.normalizer = {{.kind = NormalizerKind::kNfc}};
  spec.ignore_merges = row->ignore_merges;
  return row;
}

// Ids and flags that all kinds have, with their defaults where the file does
// not say.
struct Defaults {
  TokenId bos = kNoToken;
  TokenId eos = kNoToken;
  TokenId unknown = kNoToken;
  TokenId pad = kNoToken;
  bool add_bos = false;
  bool add_eos = false;
};

Status ReadSpecialIds(const Metadata& metadata, const Defaults& defaults,
                      TokenizerSpec& spec) {
  const auto read = [&](const char* name, TokenId otherwise) {
    return IdOr(metadata, fmt::format("tokenizer.ggml.{}_token_id", name),
                otherwise, spec.tokens.size());
  };
  ASSIGN_OR_RETURN(spec.bos, read("bos", defaults.bos));
  ASSIGN_OR_RETURN(spec.eos, read("eos", defaults.eos));
  ASSIGN_OR_RETURN(spec.unknown, read("unknown", defaults.unknown));
  ASSIGN_OR_RETURN(spec.pad, read("padding", defaults.pad));
  for (const char* name : {"eot", "eom"}) {
    ASSIGN_OR_RETURN(const TokenId id, read(name, kNoToken));
    if (id != kNoToken) spec.end_of_generation.push_back(id);
  }
  ASSIGN_OR_RETURN(const bool add_bos,
                   BoolOr(metadata, "tokenizer.ggml.add_bos_token",
                          defaults.add_bos && spec.bos != kNoToken));
  ASSIGN_OR_RETURN(const bool add_eos,
                   BoolOr(metadata, "tokenizer.ggml.add_eos_token",
                          defaults.add_eos && spec.eos != kNoToken));
  if ((add_bos && spec.bos == kNoToken) || (add_eos && spec.eos == kNoToken)) {
    return Corrupt(
        "tokenizer.ggml.add_bos_token or add_eos_token asks for a token that "
        "the file does not name");
  }
  if (add_bos) spec.prefix = {spec.bos};
  if (add_eos) spec.suffix = {spec.eos};
  return {};
}

void FindAddedTokens(TokenizerSpec& spec) {
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    TokenKind& kind = spec.kinds[id];
    if (kind == TokenKind::kUserDefined && LooksLikeControl(spec.tokens[id])) {
      kind = TokenKind::kControl;
    }
    const bool is_added = kind == TokenKind::kControl ||
                          kind == TokenKind::kUnknown ||
                          kind == TokenKind::kUserDefined;
    if (is_added && !spec.tokens[id].empty()) {
      spec.added.push_back({.id = static_cast<TokenId>(id)});
    }
  }
}

Status ReadByteLevelBpe(const Metadata& metadata, TokenizerSpec& spec) {
  spec.algorithm = Algorithm::kMergeRanks;
  spec.byte_level = true;
  ASSIGN_OR_RETURN(const PreTokenizerRow* row,
                   ReadPreTokenizer(metadata, spec));
  RETURN_IF_ERROR(ReadMerges(metadata, spec.tokens, spec));
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    const TokenKind kind = spec.kinds[id];
    if (kind != TokenKind::kNormal && kind != TokenKind::kUnused) continue;
    auto bytes = FromByteAlphabet(spec.tokens[id]);
    if (bytes) spec.tokens[id] = std::move(*bytes);
  }
  return ReadSpecialIds(metadata, {.add_bos = row->add_bos}, spec);
}

NormalizerStep SpacesToMetaspace() {
  return {.kind = NormalizerKind::kReplace,
          .pattern = " ",
          .content = std::string(kSpaceMark)};
}

Status ReadGemma4(const Metadata& metadata, TokenizerSpec& spec) {
  spec.algorithm = Algorithm::kMergeRanks;
  spec.name = "gemma4";
  spec.byte_fallback = true;
  spec.fuse_unknown = true;
  spec.metaspace = true;
  spec.normalizer = {SpacesToMetaspace()};
  RETURN_IF_ERROR(ReadMerges(metadata, spec.tokens, spec));
  RETURN_IF_ERROR(ReadSpecialIds(metadata, {.add_bos = true}, spec));
  // Files exist that deny it; the model was trained with it.
  if (spec.bos != kNoToken) spec.prefix = {spec.bos};
  return {};
}

Status ReadSentencePiece(const Metadata& metadata, TokenizerSpec& spec) {
  spec.byte_fallback = true;
  spec.metaspace = true;
  RETURN_IF_ERROR(ReadScores(metadata, spec));
  ASSIGN_OR_RETURN(spec.prefix_after_special,
                   BoolOr(metadata, "tokenizer.ggml.add_space_prefix", true));
  spec.strip_first_space = spec.prefix_after_special;
  ASSIGN_OR_RETURN(
      const bool collapse,
      BoolOr(metadata, "tokenizer.ggml.remove_extra_whitespaces", false));
  if (collapse) {
    spec.normalizer.push_back({.kind = NormalizerKind::kCollapseSpaces});
  }
  spec.normalizer.push_back(SpacesToMetaspace());
  return {};
}

Status ReadSpm(const Metadata& metadata, TokenizerSpec& spec) {
  spec.algorithm = Algorithm::kMergeScores;
  spec.name = "llama";
  RETURN_IF_ERROR(ReadSentencePiece(metadata, spec));
  return ReadSpecialIds(
      metadata, {.bos = 1, .eos = 2, .unknown = 0, .add_bos = true}, spec);
}

Status ReadUnigram(const Metadata& metadata, TokenizerSpec& spec) {
  if (metadata.Has("tokenizer.ggml.precompiled_charsmap")) {
    return Unsupported(
        "tokenizer.ggml.precompiled_charsmap (SentencePiece's own "
        "normalization) is not supported");
  }
  spec.algorithm = Algorithm::kUnigram;
  spec.name = "t5";
  spec.fuse_unknown = true;
  RETURN_IF_ERROR(ReadSentencePiece(metadata, spec));
  return ReadSpecialIds(
      metadata, {.eos = 1, .unknown = 2, .pad = 0, .add_eos = true}, spec);
}

struct Kind {
  std::string_view name;
  Status (*read)(const Metadata&, TokenizerSpec&);
};

constexpr std::array<Kind, 4> kKinds = {{{"gpt2", ReadByteLevelBpe},
                                         {"llama", ReadSpm},
                                         {"t5", ReadUnigram},
                                         {"gemma4", ReadGemma4}}};

}  // namespace

Result<TokenizerSpec> SpecFromGguf(const Metadata& metadata) {
  ASSIGN_OR_RETURN(const auto model,
                   metadata.GetString("tokenizer.ggml.model"));
  if (!model) return NotFound("the file carries no tokenizer");
  const auto kind = std::ranges::find(kKinds, *model, &Kind::name);
  if (kind == kKinds.end()) {
    return Unsupported(fmt::format(
        "tokenizer.ggml.model is '{}', expected gpt2, llama, t5 or gemma4",
        *model));
  }
  TokenizerSpec spec;
  ASSIGN_OR_RETURN(const auto* tokens,
                   metadata.GetStrings("tokenizer.ggml.tokens"));
  if (tokens == nullptr) return Corrupt("there is no 'tokenizer.ggml.tokens'");
  spec.tokens = *tokens;
  RETURN_IF_ERROR(ReadKinds(metadata, spec));
  RETURN_IF_ERROR(kind->read(metadata, spec));
  FindAddedTokens(spec);
  AddKnownEnds(spec);
  return spec;
}

}  // namespace muster::tokenizer

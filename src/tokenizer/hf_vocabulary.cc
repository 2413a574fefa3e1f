#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "tokenizer/byte_alphabet.h"
#include "tokenizer/end_of_generation.h"
#include "tokenizer/hf_spec_parts.h"
#include "tokenizer/unknown.h"

namespace muster::tokenizer {
namespace {

using IdTable = std::unordered_map<std::string_view, TokenId>;

Result<TokenId> AsId(JsonElement element) {
  int64_t id = 0;
  if (element.get(id) != simdjson::SUCCESS || id < 0 || id > INT32_MAX) {
    return Corrupt("a token's id is no number of a token");
  }
  return static_cast<TokenId>(id);
}

// Makes room for `id`; holes stay empty and unused. The bound keeps one wrong
// number from asking for gigabytes.
Status Reserve(TokenId id, size_t num_entries, TokenizerSpec& spec) {
  const auto index = static_cast<size_t>(id);
  if (index < spec.tokens.size()) return {};
  if (index > 2 * num_entries + 65536) {
    return Corrupt(
        fmt::format("token id {} is far beyond the {} tokens that "
                    "there are",
                    id, num_entries));
  }
  spec.tokens.resize(index + 1);
  spec.kinds.resize(index + 1, TokenKind::kUnused);
  return {};
}

// "vocab" of BPE: {"token": id}. Tokens are kept as written.
Status ReadVocabObject(JsonObject model, TokenizerSpec& spec, IdTable& ids) {
  const auto member = FindMember(model, "vocab");
  if (!member) return Corrupt("the model has no 'vocab'");
  ASSIGN_OR_RETURN(const auto vocab, AsObject(*member, "vocab"));
  // size() saturates at 2^24 - 1, more than any vocabulary has.
  const size_t count = vocab.size();
  ids.reserve(count);
  for (const auto& [text, element] : vocab) {
    ASSIGN_OR_RETURN(const TokenId id, AsId(element));
    RETURN_IF_ERROR(Reserve(id, count, spec));
    const auto index = static_cast<size_t>(id);
    if (spec.kinds[index] != TokenKind::kUnused) {
      return Corrupt(fmt::format("token id {} is given to '{}' and '{}'", id,
                                 spec.tokens[index], text));
    }
    spec.tokens[index] = text;
    spec.kinds[index] = TokenKind::kNormal;
    ids.emplace(text, id);
  }
  return {};
}

// "vocab" of Unigram: [["token", score]].
Status ReadVocabArray(JsonObject model, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(const auto vocab, ArrayMember(model, "vocab"));
  for (const JsonElement element : vocab) {
    JsonArray pair;
    std::string_view text;
    double score = 0;
    if (element.get(pair) != simdjson::SUCCESS ||
        pair.at(0).get(text) != simdjson::SUCCESS ||
        pair.at(1).get(score) != simdjson::SUCCESS) {
      return Corrupt("an entry of 'vocab' is not a token with its score");
    }
    spec.tokens.emplace_back(text);
    spec.kinds.push_back(TokenKind::kNormal);
    spec.scores.push_back(static_cast<float>(score));
  }
  return {};
}

// "a b", or ["a", "b"] in newer files.
Result<std::pair<std::string_view, std::string_view>> AsPair(
    JsonElement element) {
  std::string_view text;
  if (element.get(text) == simdjson::SUCCESS) {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) {
      return Corrupt(fmt::format("merge '{}' has no space", text));
    }
    return std::pair(text.substr(0, space), text.substr(space + 1));
  }
  JsonArray pair;
  std::string_view left;
  std::string_view right;
  if (element.get(pair) != simdjson::SUCCESS ||
      pair.at(0).get(left) != simdjson::SUCCESS ||
      pair.at(1).get(right) != simdjson::SUCCESS) {
    return Corrupt("a merge is neither a text nor a pair of texts");
  }
  return std::pair(left, right);
}

Status ReadMerges(JsonObject model, const IdTable& ids, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(const auto merges, ArrayMember(model, "merges"));
  std::string joined;
  for (const JsonElement element : merges) {
    ASSIGN_OR_RETURN(const auto pair, AsPair(element));
    joined = pair.first;
    joined += pair.second;
    const auto left = ids.find(pair.first);
    const auto right = ids.find(pair.second);
    const auto result = ids.find(joined);
    if (left == ids.end() || right == ids.end() || result == ids.end()) {
      return Corrupt(
          fmt::format("merge '{} {}' names no token", pair.first, pair.second));
    }
    spec.merges.push_back({.left = left->second,
                           .right = right->second,
                           .result = result->second});
  }
  return {};
}

Status RefuseAffixes(JsonObject model) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    ASSIGN_OR_RETURN(const auto affix, StringMember(model, key));
    if (!affix.value_or("").empty()) {
      return Unsupported(
          fmt::format("tokenizer.json: '{}' is '{}', which is "
                      "not supported",
                      key, *affix));
    }
  }
  return {};
}

Status ReadBpe(JsonObject model, TokenizerSpec& spec) {
  RETURN_IF_ERROR(RefuseAffixes(model));
  spec.algorithm = Algorithm::kMergeRanks;
  IdTable ids;
  RETURN_IF_ERROR(ReadVocabObject(model, spec, ids));
  RETURN_IF_ERROR(ReadMerges(model, ids, spec));
  ASSIGN_OR_RETURN(spec.byte_fallback,
                   BoolMember(model, "byte_fallback", false));
  ASSIGN_OR_RETURN(spec.fuse_unknown, BoolMember(model, "fuse_unk", false));
  ASSIGN_OR_RETURN(spec.ignore_merges,
                   BoolMember(model, "ignore_merges", false));
  ASSIGN_OR_RETURN(const auto unknown, StringMember(model, "unk_token"));
  if (unknown) {
    const auto it = ids.find(*unknown);
    if (it != ids.end()) spec.unknown = it->second;
  }
  return {};
}

Status ReadUnigram(JsonObject model, TokenizerSpec& spec) {
  spec.algorithm = Algorithm::kUnigram;
  spec.fuse_unknown = true;
  RETURN_IF_ERROR(ReadVocabArray(model, spec));
  ASSIGN_OR_RETURN(spec.byte_fallback,
                   BoolMember(model, "byte_fallback", false));
  if (const auto member = FindMember(model, "unk_id")) {
    ASSIGN_OR_RETURN(spec.unknown, AsId(*member));
  }
  return {};
}

Status ReadModel(JsonObject root, TokenizerSpec& spec) {
  const auto member = FindMember(root, "model");
  if (!member) return Corrupt("tokenizer.json has no 'model'");
  ASSIGN_OR_RETURN(const auto model, AsObject(*member, "model"));
  ASSIGN_OR_RETURN(const auto type, StringMember(model, "type"));
  // Older files leave it out and have merges.
  spec.name = type.value_or(FindMember(model, "merges") ? "BPE" : "");
  if (spec.name == "BPE") return ReadBpe(model, spec);
  if (spec.name == "Unigram") return ReadUnigram(model, spec);
  return Unsupported(fmt::format(
      "tokenizer.json: model '{}' is not supported, only BPE and Unigram",
      spec.name));
}

// What byte-level and fallback vocabularies mean by their tokens.
void DecodeTokens(TokenizerSpec& spec) {
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (spec.kinds[id] != TokenKind::kNormal) continue;
    if (spec.byte_fallback && ByteOfToken(spec.tokens[id])) {
      spec.kinds[id] = TokenKind::kByte;
    } else if (spec.byte_level) {
      auto bytes = FromByteAlphabet(spec.tokens[id]);
      if (bytes) spec.tokens[id] = std::move(*bytes);
    }
  }
  if (spec.unknown != kNoToken &&
      static_cast<size_t>(spec.unknown) < spec.kinds.size()) {
    spec.kinds[static_cast<size_t>(spec.unknown)] = TokenKind::kUnknown;
  }
}

Status ReadAddedToken(JsonObject object, size_t num_entries,
                      TokenizerSpec& spec) {
  const auto id_member = FindMember(object, "id");
  if (!id_member) return Corrupt("an added token has no 'id'");
  AddedToken added;
  ASSIGN_OR_RETURN(added.id, AsId(*id_member));
  ASSIGN_OR_RETURN(const auto content, StringMember(object, "content"));
  ASSIGN_OR_RETURN(const bool special, BoolMember(object, "special", false));
  ASSIGN_OR_RETURN(added.lstrip, BoolMember(object, "lstrip", false));
  ASSIGN_OR_RETURN(added.rstrip, BoolMember(object, "rstrip", false));
  ASSIGN_OR_RETURN(added.single_word, BoolMember(object, "single_word", false));
  ASSIGN_OR_RETURN(added.normalized,
                   BoolMember(object, "normalized", !special));
  if (content.value_or("").empty()) return {};
  RETURN_IF_ERROR(Reserve(added.id, num_entries, spec));
  const auto index = static_cast<size_t>(added.id);
  spec.tokens[index] = *content;
  if (added.id != spec.unknown) {
    const bool is_control = special || LooksLikeControl(*content);
    spec.kinds[index] =
        is_control ? TokenKind::kControl : TokenKind::kUserDefined;
  }
  spec.added.push_back(added);
  return {};
}

}  // namespace

Status ReadHfVocabulary(JsonObject root, TokenizerSpec& spec) {
  RETURN_IF_ERROR(ReadModel(root, spec));
  DecodeTokens(spec);
  if (FindMember(root, "added_tokens")) {
    ASSIGN_OR_RETURN(const auto added, ArrayMember(root, "added_tokens"));
    const size_t num_entries = spec.tokens.size() + added.size();
    for (const JsonElement element : added) {
      ASSIGN_OR_RETURN(const auto object, AsObject(element, "added_tokens"));
      RETURN_IF_ERROR(ReadAddedToken(object, num_entries, spec));
    }
  }
  // Tokens that were added behind the vocabulary have no score of their own.
  if (!spec.scores.empty()) spec.scores.resize(spec.tokens.size(), 0);
  return {};
}

}  // namespace muster::tokenizer

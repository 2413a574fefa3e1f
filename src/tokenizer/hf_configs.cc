#include <algorithm>

#include <fmt/format.h>

#include "tokenizer/hf_spec_parts.h"

namespace muster::tokenizer {
namespace {

TokenId FindText(const TokenizerSpec& spec, std::string_view text) {
  // An added token counts before a word that is written the same.
  for (const AddedToken& added : spec.added) {
    if (spec.tokens[static_cast<size_t>(added.id)] == text) return added.id;
  }
  const auto it = std::ranges::find(spec.tokens, text);
  if (text.empty() || it == spec.tokens.end()) return kNoToken;
  return static_cast<TokenId>(it - spec.tokens.begin());
}

// "bos_token": "<s>", or {"content": "<s>", ...} in older files.
Result<TokenId> NamedToken(JsonObject config, std::string_view key,
                           const TokenizerSpec& spec) {
  const auto member = FindMember(config, key);
  if (!member) return kNoToken;
  std::string_view text;
  if (member->get(text) == simdjson::SUCCESS) return FindText(spec, text);
  ASSIGN_OR_RETURN(const auto object, AsObject(*member, key));
  ASSIGN_OR_RETURN(const auto content, StringMember(object, "content"));
  return FindText(spec, content.value_or(""));
}

// "add_bos_token" says whether BOS is put before a text, whatever the template
// in tokenizer.json has.
Status ApplyAddFlag(JsonObject config, std::string_view key, TokenId token,
                    std::vector<TokenId>& ids) {
  if (!FindMember(config, key) || token == kNoToken) return {};
  ASSIGN_OR_RETURN(const bool add, BoolMember(config, key, false));
  const bool has = std::ranges::count(ids, token) > 0;
  if (add && !has) ids.insert(ids.begin(), token);
  if (!add) std::erase(ids, token);
  return {};
}

Status ReadTokenizerConfig(JsonObject config, TokenizerSpec& spec) {
  ASSIGN_OR_RETURN(spec.bos, NamedToken(config, "bos_token", spec));
  ASSIGN_OR_RETURN(spec.eos, NamedToken(config, "eos_token", spec));
  ASSIGN_OR_RETURN(spec.pad, NamedToken(config, "pad_token", spec));
  RETURN_IF_ERROR(ApplyAddFlag(config, "add_bos_token", spec.bos, spec.prefix));
  return ApplyAddFlag(config, "add_eos_token", spec.eos, spec.suffix);
}

// One id or several; ids that the tokenizer does not have are left out (a
// model's matrix may be larger than its vocabulary).
std::vector<TokenId> IdsOf(JsonObject config, std::string_view key,
                           const TokenizerSpec& spec) {
  std::vector<TokenId> ids;
  const auto add = [&](JsonElement element) {
    int64_t id = -1;
    if (element.get(id) == simdjson::SUCCESS && id >= 0 &&
        static_cast<uint64_t>(id) < spec.tokens.size()) {
      ids.push_back(static_cast<TokenId>(id));
    }
  };
  const auto member = FindMember(config, key);
  if (!member) return ids;
  JsonArray list;
  if (member->get(list) == simdjson::SUCCESS) {
    for (const JsonElement element : list) add(element);
  } else {
    add(*member);
  }
  return ids;
}

void ReadModelConfig(JsonObject config, TokenizerSpec& spec) {
  for (const TokenId id : IdsOf(config, "eos_token_id", spec)) {
    spec.end_of_generation.push_back(id);
    if (spec.eos == kNoToken) spec.eos = id;
  }
  const auto bos = IdsOf(config, "bos_token_id", spec);
  if (spec.bos == kNoToken && !bos.empty()) spec.bos = bos.front();
}

// Calls read(object) where `json` is not empty.
template <typename Read>
Status WithJson(std::string_view name, std::string_view json, Read read) {
  if (json.empty()) return {};
  simdjson::dom::parser parser;
  JsonElement root;
  const auto error = parser.parse(json.data(), json.size()).get(root);
  if (error != simdjson::SUCCESS) {
    return Corrupt(fmt::format("{}: {}", name, simdjson::error_message(error)));
  }
  ASSIGN_OR_RETURN(const auto object, AsObject(root, name));
  return read(object);
}

}  // namespace

Status ReadHfConfigs(const HfTokenizerFiles& files, TokenizerSpec& spec) {
  RETURN_IF_ERROR(WithJson(
      "tokenizer_config.json", files.tokenizer_config_json,
      [&](JsonObject config) { return ReadTokenizerConfig(config, spec); }));
  const auto read = [&](JsonObject config) -> Status {
    ReadModelConfig(config, spec);
    return {};
  };
  RETURN_IF_ERROR(
      WithJson("generation_config.json", files.generation_config_json, read));
  return WithJson("config.json", files.config_json, read);
}

}  // namespace muster::tokenizer

#include "tokenizer/hf_spec.h"

#include <fmt/format.h>

#include "tokenizer/end_of_generation.h"
#include "tokenizer/hf_spec_parts.h"

namespace muster::tokenizer {

Result<TokenizerSpec> SpecFromHf(const HfTokenizerFiles& files) {
  if (files.tokenizer_json.empty()) {
    return NotFound("there is no tokenizer.json");
  }
  simdjson::dom::parser parser;
  JsonElement element;
  const auto error =
      parser.parse(files.tokenizer_json.data(), files.tokenizer_json.size())
          .get(element);
  if (error != simdjson::SUCCESS) {
    return Corrupt(
        fmt::format("tokenizer.json: {}", simdjson::error_message(error)));
  }
  ASSIGN_OR_RETURN(const auto root, AsObject(element, "tokenizer.json"));
  TokenizerSpec spec;
  RETURN_IF_ERROR(ReadHfNormalizer(root, spec));
  RETURN_IF_ERROR(ReadHfPreTokenizer(root, spec));
  RETURN_IF_ERROR(ReadHfDecoder(root, spec));
  RETURN_IF_ERROR(ReadHfVocabulary(root, spec));
  RETURN_IF_ERROR(ReadHfPostProcessor(root, spec));
  RETURN_IF_ERROR(ReadHfConfigs(files, spec));
  AddKnownEnds(spec);
  return spec;
}

}  // namespace muster::tokenizer

// Reads the tokenizer that a safetensors folder carries: tokenizer.json, with
// what tokenizer_config.json and the others say about BOS and EOS.
// Source: the file format of Hugging Face `tokenizers` (serialization of
// Tokenizer); docs/tokenizers.md lists what is understood.
#pragma once

#include <string_view>

#include "base/status.h"
#include "tokenizer/spec.h"

namespace muster::tokenizer {

// Contents of files; empty: there is no such file. Only the first is needed.
struct HfTokenizerFiles {
  std::string_view tokenizer_json = {};
  std::string_view tokenizer_config_json = {};
  std::string_view generation_config_json = {};
  std::string_view config_json = {};
};

// kNotFound: no tokenizer.json. kUnsupported names the component that is not
// understood; nothing is skipped silently.
Result<TokenizerSpec> SpecFromHf(const HfTokenizerFiles& files);

}  // namespace muster::tokenizer

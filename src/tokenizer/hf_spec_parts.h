// The parts of a tokenizer.json, each read into its part of a TokenizerSpec.
// For hf_spec.cc only.
#pragma once

#include "base/status.h"
#include "tokenizer/hf_json.h"
#include "tokenizer/hf_spec.h"
#include "tokenizer/spec.h"

namespace muster::tokenizer {

// "normalizer", "pre_tokenizer", "post_processor", "decoder": each may be
// absent. The pre-tokenizer decides spec.byte_level.
Status ReadHfNormalizer(JsonObject root, TokenizerSpec& spec);
Status ReadHfPreTokenizer(JsonObject root, TokenizerSpec& spec);
Status ReadHfPostProcessor(JsonObject root, TokenizerSpec& spec);
Status ReadHfDecoder(JsonObject root, TokenizerSpec& spec);

// "model" and "added_tokens". REQUIRES: spec.byte_level is set.
Status ReadHfVocabulary(JsonObject root, TokenizerSpec& spec);

// BOS, EOS and more from the files beside tokenizer.json. REQUIRES: the
// vocabulary and the post-processor are read.
Status ReadHfConfigs(const HfTokenizerFiles& files, TokenizerSpec& spec);

}  // namespace muster::tokenizer

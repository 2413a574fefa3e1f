// Reads the tokenizer that a GGUF file carries: the keys tokenizer.ggml.*.
// Source: the GGUF specification; where it is silent, what llama.cpp does.
#pragma once

#include "base/status.h"
#include "formats/metadata.h"
#include "tokenizer/spec.h"

namespace muster::tokenizer {

// kNotFound: there is no tokenizer.ggml.model. kUnsupported: a kind or a
// pre-tokenizer that is not known, by name.
Result<TokenizerSpec> SpecFromGguf(const formats::Metadata& metadata);

}  // namespace muster::tokenizer

// Which tokens end an answer. Files name one or two of them; chat models end
// with others, too, that are known by how they are written.
#pragma once

#include <string_view>

#include "tokenizer/spec.h"

namespace muster::tokenizer {

// Whether a token that is written like that steers the model, although its file
// may not say so: "<|im_start|>", "<｜User｜>".
bool LooksLikeControl(std::string_view text);

// Adds to spec.end_of_generation eos and the known tokens. Tokens of kind
// kNormal and kByte are never taken for one of those.
void AddKnownEnds(TokenizerSpec& spec);

}  // namespace muster::tokenizer

// How words are cut, by the name that a GGUF file gives (tokenizer.ggml.pre).
// The names are those of llama.cpp; the patterns are those of the models' own
// tokenizer.json. A name that is not here is refused: a wrong guess makes a
// model quietly dumber (CASES K08).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/spec.h"

namespace muster::tokenizer {

struct PreTokenizerRow {
  std::string_view name;
  std::span<const std::string_view> patterns;  // applied one after the other
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
  bool nfc = false;      // text is normalized first
};

// nullptr: not known.
const PreTokenizerRow* FindPreTokenizer(std::string_view name);
std::span<const PreTokenizerRow> AllPreTokenizers();

// What the ByteLevel pre-tokenizer of a tokenizer.json cuts by.
std::string_view ByteLevelPattern();

std::vector<PreTokenizerStep> StepsOf(const PreTokenizerRow& row);

}  // namespace muster::tokenizer

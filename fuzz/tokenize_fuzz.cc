// Any bytes as text: byte-level BPE gives them back, and no text becomes a
// control token. The first byte chooses how words are cut.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tokenizer/stream_decoder.h"
#include "tokenizer/tiny_vocabulary.h"
#include "tokenizer/tokenizer.h"

namespace {

using muster::tokenizer::AllPreTokenizers;
using muster::tokenizer::MakeTokenizer;
using muster::tokenizer::StreamDecoder;
using muster::tokenizer::TinyByteLevel;
using muster::tokenizer::TokenId;
using muster::tokenizer::Tokenizer;
using muster::tokenizer::TokenKind;

std::unique_ptr<Tokenizer> Make(std::string_view pre_tokenizer) {
  TinyByteLevel tiny(pre_tokenizer);
  for (const char* text :
       {"aa", "the ", "  ", "\n\n", "\u4e2d", "\U0001F600"}) {
    tiny.MergeAll(text, 2);
  }
  tiny.AddSpecial("<|im_end|>", TokenKind::kControl);
  tiny.AddSpecial("<think>", TokenKind::kUserDefined);
  return MakeTokenizer(std::move(tiny.spec())).value();
}

const Tokenizer& TokenizerOf(size_t choice) {
  static const auto* all = [] {
    auto* out = new std::vector<std::unique_ptr<Tokenizer>>;
    for (const auto& row : AllPreTokenizers()) out->push_back(Make(row.name));
    return out;
  }();
  return *(*all)[choice % all->size()];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const Tokenizer& tokenizer = TokenizerOf(data[0]);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  const auto ids = tokenizer.Encode(text);
  CHECK(tokenizer.Decode(ids) == text);
  StreamDecoder decoder(tokenizer);
  std::string streamed;
  for (const TokenId id : ids) {
    CHECK(!tokenizer.IsControl(id));
    streamed += decoder.Feed(id);
  }
  streamed += decoder.Flush();
  // Only what is not UTF-8 is shown otherwise.
  const bool is_changed = streamed.find("\xEF\xBF\xBD") != std::string::npos;
  CHECK(is_changed || streamed == text);
  (void)tokenizer.Encode(text, {.parse_special = true});
  return 0;
}

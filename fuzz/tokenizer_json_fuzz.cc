// Any bytes as tokenizer.json: an error or a tokenizer that works.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tokenizer/hf_spec.h"
#include "tokenizer/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto spec = muster::tokenizer::SpecFromHf({.tokenizer_json = text});
  if (!spec.ok()) return 0;
  const auto tokenizer = muster::tokenizer::MakeTokenizer(std::move(*spec));
  if (!tokenizer.ok()) return 0;
  for (const bool parse_special : {false, true}) {
    const auto ids = (*tokenizer)
                         ->Encode("Hello \xFF w\u00f6rld  <|im_end|>12",
                                  {.parse_special = parse_special});
    for (const auto id : ids) {
      CHECK(id >= 0);
      CHECK_LT(static_cast<size_t>(id), (*tokenizer)->vocab_size());
    }
    (void)(*tokenizer)->Decode(ids);
  }
  return 0;
}

// A chat template and its messages, both hostile. The input is the template,
// then a zero byte, then messages as JSON; without them, a short conversation.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using muster::tokenizer::ChatInput;
  using muster::tokenizer::ChatTemplate;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t zero = bytes.find('\0');
  const bool has_messages = zero != std::string_view::npos;
  const std::string_view messages =
      has_messages ? bytes.substr(zero + 1)
                   : R"([{"role":"user","content":"Hi <b> ż"},)"
                     R"({"role":"tool","x":{"a":[1,2.5,null]}}])";
  const auto parsed = ChatTemplate::Parse(std::string(bytes.substr(0, zero)));
  if (!parsed.ok()) return 0;
  ChatInput input;
  input.bos_token = "<s>";
  const auto values = muster::tokenizer::MessagesFromJson(messages);
  if (values.ok()) input.messages = *values;
  const auto pieces = parsed->Render(input);
  if (!pieces.ok()) return 0;
  bool last = !pieces->empty() && !pieces->front().from_template;
  for (const auto& piece : *pieces) {
    if (piece.text.empty() || piece.from_template == last) __builtin_trap();
    last = piece.from_template;
  }
  return 0;
}

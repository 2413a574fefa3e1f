#include "tokenizer/end_of_generation.h"

#include <algorithm>
#include <array>
#include <span>

namespace muster::tokenizer {
namespace {

// clang-format off
constexpr auto kKnownEnds = std::to_array<std::string_view>({
    "<|eot_id|>", "<|eom_id|>",            // Llama 3
    "<|im_end|>", "<|endoftext|>",         // ChatML, Qwen, GPT-2
    "<|end|>",                             // Phi-3
    "<|return|>", "<|call|>",              // gpt-oss
    "<|flush|>", "<|calls|>",              // Solar Open
    "<end_of_turn>", "<eos>",              // Gemma
    "<turn|>", "<|tool_response>",         // Gemma 4
    "</s>",                                // SentencePiece models
    "<EOT>", "_<EOT>", "[EOT]", "[EOS]",   // Kimi-K2
    "<|end_of_text|>",                     // Granite
    "<end_of_utterance>",                  // SmolDocling
    "<｜end▁of▁sentence｜>",               // DeepSeek
    "[e~[",                                // MiniMax-M2
    "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>",  // Qwen Coder
});
// clang-format on

bool Has(std::span<const std::string> tokens, std::span<const TokenId> ids,
         std::string_view text) {
  return std::ranges::any_of(
      ids, [&](TokenId id) { return tokens[static_cast<size_t>(id)] == text; });
}

void Remove(const TokenizerSpec& spec, std::string_view text,
            std::vector<TokenId>& ids) {
  std::erase_if(ids, [&](TokenId id) {
    return spec.tokens[static_cast<size_t>(id)] == text;
  });
}

}  // namespace

bool LooksLikeControl(std::string_view text) {
  const auto is_between = [&](std::string_view open, std::string_view close) {
    return text.size() > open.size() + close.size() && text.starts_with(open) &&
           text.ends_with(close);
  };
  return is_between("<|", "|>") || is_between("<\xEF\xBD\x9C", "\xEF\xBD\x9C>");
}

void AddKnownEnds(TokenizerSpec& spec) {
  std::vector<TokenId>& ends = spec.end_of_generation;
  const auto add = [&](TokenId id) {
    if (id != kNoToken && !std::ranges::count(ends, id)) ends.push_back(id);
  };
  const std::vector<TokenId> named = ends;
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    const TokenKind kind = spec.kinds[id];
    if (kind == TokenKind::kNormal || kind == TokenKind::kByte) continue;
    if (std::ranges::count(kKnownEnds, spec.tokens[id])) {
      add(static_cast<TokenId>(id));
    }
  }
  // Where a message has several parts, "<|end|>" ends a part only.
  const bool has_parts = (Has(spec.tokens, ends, "<|return|>") &&
                          Has(spec.tokens, ends, "<|call|>")) ||
                         (Has(spec.tokens, ends, "<|calls|>") &&
                          Has(spec.tokens, ends, "<|flush|>"));
  if (has_parts) Remove(spec, "<|end|>", ends);
  // Gemma 4 has the word as a left-over.
  if (Has(spec.tokens, ends, "<|tool_response>")) Remove(spec, "</s>", ends);
  for (const TokenId id : named) add(id);
  add(spec.eos);
}

}  // namespace muster::tokenizer

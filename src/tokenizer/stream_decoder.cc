#include "tokenizer/stream_decoder.h"

#include "tokenizer/unicode.h"

namespace muster::tokenizer {
namespace {

// Moves what is settled from `held` to the result.
std::string TakeSettled(std::string& held, bool is_end) {
  std::string out;
  size_t pos = 0;
  while (pos < held.size()) {
    const std::string_view rest = std::string_view(held).substr(pos);
    const size_t valid = ValidPrefix(rest);
    out += rest.substr(0, valid);
    pos += valid;
    if (pos == held.size()) break;
    const std::string_view broken = std::string_view(held).substr(pos);
    if (IsCharacterStart(broken)) {
      if (!is_end) break;
      pos = held.size();
    } else {
      // One sign for the longest start of a character, as browsers do.
      size_t size = 1;
      while (size + 1 < broken.size() &&
             IsCharacterStart(broken.substr(0, size + 1))) {
        ++size;
      }
      pos += size;
    }
    out += kReplacementCharacter;
  }
  held.erase(0, pos);
  return out;
}

}  // namespace

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer,
                             std::span<const TokenId> context)
    : tokenizer_(tokenizer),
      at_start_(context.empty() || tokenizer.IsControl(context.back())) {}

std::string StreamDecoder::Feed(TokenId id) {
  if (tokenizer_.IsControl(id)) return {};
  std::string_view bytes = tokenizer_.TokenBytes(id);
  if (bytes.empty()) return {};
  const bool strip = at_start_ && tokenizer_.strips_first_space();
  if (strip && bytes.starts_with(' ')) bytes.remove_prefix(1);
  at_start_ = false;
  held_ += bytes;
  return TakeSettled(held_, false);
}

std::string StreamDecoder::Flush() {
  at_start_ = false;
  return TakeSettled(held_, true);
}

}  // namespace muster::tokenizer

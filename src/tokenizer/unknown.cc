#include "tokenizer/unknown.h"

#include <algorithm>
#include <charconv>

namespace muster::tokenizer {

std::optional<char> ByteOfToken(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') {
    return std::nullopt;
  }
  unsigned byte = 0;
  const char* end = text.data() + 5;
  const auto result = std::from_chars(text.data() + 3, end, byte, 16);
  if (result.ec != std::errc() || result.ptr != end) return std::nullopt;
  return static_cast<char>(byte);
}

UnknownCharacters::UnknownCharacters(const TokenizerSpec& spec)
    : unknown_(spec.unknown), fuse_(spec.fuse_unknown) {
  bytes_.fill(kNoToken);
  if (!spec.byte_fallback) return;
  for (size_t id = 0; id < spec.tokens.size(); ++id) {
    if (spec.kinds[id] != TokenKind::kByte) continue;
    const auto byte = ByteOfToken(spec.tokens[id]);
    if (byte)
      bytes_[static_cast<unsigned char>(*byte)] = static_cast<TokenId>(id);
  }
}

bool UnknownCharacters::HasAllBytes(std::string_view text) const {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return bytes_[static_cast<unsigned char>(c)] != kNoToken;
  });
}

bool UnknownCharacters::Append(std::string_view character, bool after_unknown,
                               std::vector<TokenId>& out) const {
  if (HasAllBytes(character)) {
    for (const char c : character) {
      out.push_back(bytes_[static_cast<unsigned char>(c)]);
    }
    return false;
  }
  if (unknown_ != kNoToken && !(fuse_ && after_unknown)) {
    out.push_back(unknown_);
  }
  return true;
}

}  // namespace muster::tokenizer

// Strings to ids, asked for by prefix.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "tokenizer/flat_map.h"
#include "tokenizer/token_id.h"

namespace muster::tokenizer {

// Immutable, thread-safe.
class Trie {
 public:
  using Entry = std::pair<std::string_view, TokenId>;

  Trie() = default;
  // Empty strings are left out; of equal strings the first counts.
  explicit Trie(std::span<const Entry> entries);

  // Calls found(size, id) for each entry that `text` begins with, shortest
  // first.
  template <typename Found>
  void ForEachPrefix(std::string_view text, Found found) const {
    uint64_t node = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const uint64_t* next =
          edges_.Find(EdgeKey(node, static_cast<unsigned char>(text[i])));
      if (next == nullptr) return;
      node = *next >> 32;
      const auto id = static_cast<TokenId>(*next & 0xFFFFFFFFu);
      if (id != kNoToken) found(i + 1, id);
    }
  }

  // Whether any entry begins with this byte: one array look-up.
  bool MayBegin(char byte) const {
    return first_[static_cast<unsigned char>(byte)];
  }

 private:
  static uint64_t EdgeKey(uint64_t node, unsigned char byte) {
    return (node << 8) | byte;
  }

  // (node, byte) to (node << 32 | id of the string that ends there).
  FlatMap edges_;
  std::array<bool, 256> first_{};
};

}  // namespace muster::tokenizer

#include "tokenizer/trie.h"

#include <unordered_map>

namespace muster::tokenizer {

Trie::Trie(std::span<const Entry> entries) {
  // Built as (node, byte) to node with the ids beside, then packed.
  std::unordered_map<uint64_t, uint64_t> children;
  std::vector<TokenId> ids(1, kNoToken);
  for (const auto& [text, id] : entries) {
    if (text.empty()) continue;
    first_[static_cast<unsigned char>(text[0])] = true;
    uint64_t node = 0;
    for (const char c : text) {
      const auto [it, is_new] = children.emplace(
          EdgeKey(node, static_cast<unsigned char>(c)), ids.size());
      if (is_new) ids.push_back(kNoToken);
      node = it->second;
    }
    if (ids[node] == kNoToken) ids[node] = id;
  }
  edges_ = FlatMap(children.size());
  for (const auto& [key, node] : children) {
    edges_.Insert(key, (node << 32) | static_cast<uint32_t>(ids[node]));
  }
}

}  // namespace muster::tokenizer

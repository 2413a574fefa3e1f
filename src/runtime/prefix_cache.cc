#include "runtime/prefix_cache.h"

#include <algorithm>

#include "base/check.h"

namespace muster::runtime {

struct PrefixCache::Node {
  KvPage page;
  // Of the page's first positions: whole blocks. Fewer than a page's: a leaf.
  std::vector<int32_t> tokens;
  uint64_t last_use = 0;
  Nodes children;

  bool is_full() const { return tokens.size() == kKvPagePositions; }
};

namespace {

size_t WholeBlocks(size_t num_tokens) {
  return num_tokens / PrefixCache::kBlock * PrefixCache::kBlock;
}

// How many first tokens of both are equal.
size_t CommonTokens(std::span<const int32_t> a, std::span<const int32_t> b) {
  const auto [end, unused] = std::ranges::mismatch(a, b);
  return static_cast<size_t>(end - a.begin());
}

}  // namespace

PrefixCache::PrefixCache(KvPages* pages) : pages_(pages) {}
PrefixCache::~PrefixCache() = default;

PrefixCache::Match PrefixCache::FindChild(const Nodes& children,
                                          std::span<const int32_t> tokens) {
  Match best;
  for (const std::unique_ptr<Node>& child : children) {
    const size_t common = WholeBlocks(CommonTokens(child->tokens, tokens));
    if (common > best.num_tokens) best = {child.get(), common};
  }
  return best;
}

size_t PrefixCache::Find(std::span<const int32_t> tokens) const {
  if (tokens.empty()) return 0;
  tokens = tokens.first(tokens.size() - 1);
  size_t found = 0;
  for (const Nodes* level = &roots_;;) {
    const Match match = FindChild(*level, tokens.subspan(found));
    found += match.num_tokens;
    if (match.num_tokens < kKvPagePositions) return found;
    level = &match.node->children;
  }
}

size_t PrefixCache::NumPagesInUse(std::span<const int32_t> tokens) const {
  if (tokens.empty()) return 0;
  tokens = tokens.first(tokens.size() - 1);
  size_t num_in_use = 0;
  for (const Nodes* level = &roots_;;) {
    const Match match = FindChild(*level, tokens);
    if (match.num_tokens < kKvPagePositions) return num_in_use;
    if (match.node->page.is_shared()) ++num_in_use;
    tokens = tokens.subspan(kKvPagePositions);
    level = &match.node->children;
  }
}

size_t PrefixCache::Restore(std::span<const int32_t> tokens, KvCache* kv) {
  CHECK_EQ(kv->capacity(), 0u);
  if (tokens.empty()) return 0;
  tokens = tokens.first(tokens.size() - 1);
  ++clock_;
  size_t restored = 0;
  for (const Nodes* level = &roots_;;) {
    const Match match = FindChild(*level, tokens.subspan(restored));
    if (match.node == nullptr) return restored;
    match.node->last_use = clock_;
    if (match.num_tokens < kKvPagePositions) {
      if (!kv->Reserve(restored + match.num_tokens)) return restored;
      pages_->CopyPositions(match.node->page, match.num_tokens,
                            kv->pages().back());
      return restored + match.num_tokens;
    }
    kv->Append(match.node->page);
    restored += kKvPagePositions;
    level = &match.node->children;
  }
}

void PrefixCache::Remember(std::span<const int32_t> tokens, KvCache* kv) {
  tokens = tokens.first(WholeBlocks(tokens.size()));
  CHECK_LE(tokens.size(), kv->capacity());
  ++clock_;
  Nodes* level = &roots_;
  for (size_t begin = 0; begin < tokens.size(); begin += kKvPagePositions) {
    const std::span<const int32_t> of_page = tokens.subspan(
        begin, std::min(kKvPagePositions, tokens.size() - begin));
    const size_t number = begin / kKvPagePositions;
    const KvPage& page = kv->pages()[number];
    const Match match = FindChild(*level, of_page);
    Node* node = match.node;
    if (node != nullptr && match.num_tokens == of_page.size()) {
      if (match.num_tokens == kKvPagePositions) kv->Share(number, node->page);
    } else if (node != nullptr && match.num_tokens == node->tokens.size()) {
      node->page = page;  // which has more
      node->tokens.assign(of_page.begin(), of_page.end());
    } else {
      level->push_back(std::make_unique<Node>(
          Node{.page = page, .tokens = {of_page.begin(), of_page.end()}}));
      node = level->back().get();
    }
    node->last_use = clock_;
    level = &node->children;
  }
}

// A node is used whenever a child is, so that the oldest of all is a leaf but
// for those that a sequence has a share of.
void PrefixCache::FindOldest(Nodes& nodes, Place* oldest) {
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node& node = *nodes[i];
    FindOldest(node.children, oldest);
    if (!node.children.empty() || node.page.is_shared()) continue;
    if (oldest->siblings == nullptr ||
        node.last_use < (*oldest->siblings)[oldest->index]->last_use) {
      *oldest = {&nodes, i};
    }
  }
}

bool PrefixCache::EvictOne() {
  Place oldest;
  FindOldest(roots_, &oldest);
  if (oldest.siblings == nullptr) return false;
  oldest.siblings->erase(oldest.siblings->begin() +
                         static_cast<std::ptrdiff_t>(oldest.index));
  return true;
}

size_t PrefixCache::CountAlone(const Nodes& nodes) {
  size_t count = 0;
  for (const std::unique_ptr<Node>& node : nodes) {
    count += CountAlone(node->children);
    if (!node->page.is_shared()) ++count;
  }
  return count;
}

size_t PrefixCache::num_pages_alone() const { return CountAlone(roots_); }

}  // namespace muster::runtime

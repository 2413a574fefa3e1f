// Keys and values of texts that were computed before, for sequences that begin
// with the same tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/kv_cache.h"
#include "runtime/kv_pages.h"

namespace muster::runtime {

// A tree of pages, each with the tokens of its positions: a page's key and
// values depend on all tokens up to their positions, so that a path from the
// root is what may be reused. Tokens are compared themselves, not their hashes.
// Whole pages are shared; of a page of which only a part fits, or which is not
// full, the whole tiles that fit are copied. One thread at a time.
class PrefixCache {
 public:
  // Positions are remembered in blocks of so many.
  static constexpr size_t kBlock = kernels::kKvTilePositions;

  // `pages` must outlive this object.
  explicit PrefixCache(KvPages* pages);
  ~PrefixCache();

  // How many of the first tokens are there: a multiple of kBlock, and fewer
  // than all, since the last one's logits must be computed.
  size_t Find(std::span<const int32_t> tokens) const;

  // Of the whole pages that Find finds, how many a sequence has a share of.
  size_t NumPagesInUse(std::span<const int32_t> tokens) const;

  // Puts what Find finds into `kv`, which is empty, and returns how many
  // positions that is; fewer when no page is left to copy a part of one into.
  size_t Restore(std::span<const int32_t> tokens, KvCache* kv);

  // Keeps shares of the pages that hold `tokens`, as far as those are whole
  // blocks; where it has a whole page with the same tokens already, `kv` gets a
  // share of that instead of its own. Whoever owns `kv` may store behind them
  // and nowhere else.
  // REQUIRES: the positions of all tokens are stored in `kv`.
  void Remember(std::span<const int32_t> tokens, KvCache* kv);

  // Forgets the page that has been of no use for longest among those that no
  // sequence has a share of and no other follows, which makes it free. False:
  // there is none.
  bool EvictOne();

  // Pages that no sequence has a share of.
  size_t num_pages_alone() const;

 private:
  struct Node;
  using Nodes = std::vector<std::unique_ptr<Node>>;
  // The child that shares most first tokens, and how many: a multiple of
  // kBlock. Null: none shares a block.
  struct Match {
    Node* node = nullptr;
    size_t num_tokens = 0;
  };
  static Match FindChild(const Nodes& children,
                         std::span<const int32_t> tokens);
  struct Place {  // of a node in its parent's children
    Nodes* siblings = nullptr;
    size_t index = 0;
  };
  static void FindOldest(Nodes& nodes, Place* oldest);
  static size_t CountAlone(const Nodes& nodes);

  KvPages* pages_;
  Nodes roots_;
  uint64_t clock_ = 0;  // of uses
};

}  // namespace muster::runtime

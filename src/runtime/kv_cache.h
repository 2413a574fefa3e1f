// Keys and values of one sequence, all layers: a table of pages.
#pragma once

#include <cstddef>
#include <vector>

#include "kernels/kv_tiles.h"
#include "runtime/kv_pages.h"

namespace muster::runtime {

// One thread at a time, but: threads may store different positions at once, and
// no thread may read a layer while another stores in it, since neighbouring
// positions share tiles.
class KvCache {
 public:
  // `pages` must outlive this object.
  explicit KvCache(KvPages* pages) : pages_(pages) {}

  // What a cache of `capacity` positions takes: whole pages.
  static uint64_t SizeBytes(const model::ModelConfig& config, size_t capacity,
                            kernels::KvType type) {
    return KvPages::PagesFor(capacity) * KvPages::PageBytes(config, type);
  }

  size_t capacity() const { return table_.size() * kKvPagePositions; }

  // Takes pages until `positions` fit. False: none is left; it keeps what it
  // got.
  bool Reserve(size_t positions);

  // Puts a share of a page behind what is there. From then on what the page
  // holds may be read; nobody may store in it but where no share's owner reads.
  void Append(KvPage page) { table_.push_back(std::move(page)); }

  // Takes a page that holds the same in place of one of its own.
  void Share(size_t number, KvPage page) { table_[number] = std::move(page); }

  // Gives back the pages that only positions from `position` on need.
  void Truncate(size_t position);

  // Block b lies in page b.
  const std::vector<KvPage>& pages() const { return table_; }

  // Stores one position of one layer.   k, v: [num_kv_heads, head_dim]
  // REQUIRES: position < capacity().
  void Store(size_t layer, size_t position, const float* k, const float* v);

  // The tiles of one block of attention, as kernels::AttendBlock reads them.
  // REQUIRES: block < pages().size().
  kernels::KvHeadView Block(size_t layer, size_t kv_head, size_t block) const;

 private:
  KvPages* pages_;
  std::vector<KvPage> table_;
};

}  // namespace muster::runtime

#include "runtime/kv_cache.h"

#include <algorithm>

#include "base/check.h"

namespace muster::runtime {

using kernels::kKvTilePositions;

bool KvCache::Reserve(size_t positions) {
  while (capacity() < positions) {
    std::optional<KvPage> page = pages_->Take();
    if (!page) return false;
    table_.push_back(*std::move(page));
  }
  return true;
}

void KvCache::Truncate(size_t position) {
  const size_t keep = std::min(table_.size(), KvPages::PagesFor(position));
  table_.erase(table_.begin() + static_cast<std::ptrdiff_t>(keep),
               table_.end());
}

void KvCache::Store(size_t layer, size_t position, const float* k,
                    const float* v) {
  CHECK_LT(position, capacity());
  const KvPage& page = table_[position / kKvPagePositions];
  const size_t tile = position % kKvPagePositions / kKvTilePositions;
  const size_t offset = tile * pages_->tile_bytes();
  const size_t slot = position % kKvTilePositions;
  const size_t head_dim = pages_->head_dim();
  for (size_t head = 0; head < pages_->num_kv_heads(); ++head) {
    const KvPages::Tiles tiles = pages_->TilesOf(page, layer, head);
    kernels::StoreKey(pages_->type(), k + head * head_dim, head_dim, slot,
                      tiles.keys + offset);
    kernels::StoreValue(pages_->type(), v + head * head_dim, head_dim, slot,
                        tiles.values + offset);
  }
}

kernels::KvHeadView KvCache::Block(size_t layer, size_t kv_head,
                                   size_t block) const {
  const KvPages::Tiles tiles = pages_->TilesOf(table_[block], layer, kv_head);
  return {.type = pages_->type(),
          .keys = tiles.keys,
          .values = tiles.values,
          .head_dim = pages_->head_dim()};
}

}  // namespace muster::runtime

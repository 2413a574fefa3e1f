#include "runtime/kv_cache.h"

#include "base/check.h"

namespace muster::runtime {

using kernels::kKvTilePositions;

KvCache::KvCache(const model::ModelConfig& config, size_t capacity,
                 kernels::KvType type)
    : num_kv_heads_(config.num_kv_heads),
      head_dim_(config.head_dim),
      capacity_(capacity),
      type_(type),
      tile_bytes_(kernels::KvTileBytes(type, config.head_dim)),
      head_bytes_((capacity + kKvTilePositions - 1) / kKvTilePositions *
                  tile_bytes_),
      buffer_(config.layers.size() * 2 * num_kv_heads_ * head_bytes_) {}

size_t KvCache::BytesPerPosition(const model::ModelConfig& config,
                                 kernels::KvType type) {
  return config.layers.size() * 2 * config.num_kv_heads *
         kernels::KvVectorBytes(type, config.head_dim);
}

void KvCache::Store(size_t layer, size_t position, const float* k,
                    const float* v) {
  CHECK_LT(position, capacity_);
  const size_t tile = position / kKvTilePositions * tile_bytes_;
  const size_t slot = position % kKvTilePositions;
  for (size_t head = 0; head < num_kv_heads_; ++head) {
    kernels::StoreKey(type_, k + head * head_dim_, head_dim_, slot,
                      buffer_.data() + Offset(layer, 0, head) + tile);
    kernels::StoreValue(type_, v + head * head_dim_, head_dim_, slot,
                        buffer_.data() + Offset(layer, 1, head) + tile);
  }
}

kernels::KvHeadView KvCache::Head(size_t layer, size_t kv_head) const {
  return {.type = type_,
          .keys = buffer_.data() + Offset(layer, 0, kv_head),
          .values = buffer_.data() + Offset(layer, 1, kv_head),
          .head_dim = head_dim_};
}

size_t KvCache::Offset(size_t layer, size_t part, size_t kv_head) const {
  return ((layer * 2 + part) * num_kv_heads_ + kv_head) * head_bytes_;
}

}  // namespace muster::runtime

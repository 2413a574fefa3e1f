#include "runtime/kv_cache.h"

#include <fmt/format.h>

#include "base/check.h"

namespace muster::runtime {

using kernels::kKvTilePositions;

namespace {

// Of the keys or the values of one head in one layer.
size_t HeadBytes(const model::ModelConfig& config, size_t capacity,
                 kernels::KvType type) {
  return (capacity + kKvTilePositions - 1) / kKvTilePositions *
         kernels::KvTileBytes(type, config.head_dim);
}

}  // namespace

Status KvCache::CheckType(const model::ModelConfig& config,
                          kernels::KvType type) {
  if (type != kernels::KvType::kQ8 || config.head_dim % 32 == 0) return {};
  return InvalidArgument(fmt::format(
      "a Q8 cache needs heads of a multiple of 32, this model's have {}",
      config.head_dim));
}

uint64_t KvCache::SizeBytes(const model::ModelConfig& config, size_t capacity,
                            kernels::KvType type) {
  return uint64_t{config.layers.size()} * 2 * config.num_kv_heads *
         HeadBytes(config, capacity, type);
}

KvCache::KvCache(const model::ModelConfig& config, size_t capacity,
                 kernels::KvType type)
    : num_kv_heads_(config.num_kv_heads),
      head_dim_(config.head_dim),
      capacity_(capacity),
      type_(type),
      tile_bytes_(kernels::KvTileBytes(type, config.head_dim)),
      head_bytes_(HeadBytes(config, capacity, type)),
      buffer_(SizeBytes(config, capacity, type)) {}

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

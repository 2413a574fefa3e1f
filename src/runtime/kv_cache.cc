#include "runtime/kv_cache.h"

#include "base/check.h"

namespace muster::runtime {

KvCache::KvCache(const model::ModelConfig& config, size_t capacity,
                 kernels::KvType type)
    : num_kv_heads_(config.num_kv_heads),
      head_dim_(config.head_dim),
      capacity_(capacity),
      type_(type),
      vector_bytes_(kernels::KvVectorBytes(type, config.head_dim)),
      buffer_(SizeBytes(config, capacity, type)) {}

size_t KvCache::SizeBytes(const model::ModelConfig& config, size_t capacity,
                          kernels::KvType type) {
  return config.layers.size() * 2 * config.num_kv_heads * capacity *
         kernels::KvVectorBytes(type, config.head_dim);
}

void KvCache::Store(size_t layer, size_t position, const float* k,
                    const float* v) {
  CHECK_LT(position, capacity_);
  for (size_t head = 0; head < num_kv_heads_; ++head) {
    const size_t at = position * vector_bytes_;
    kernels::StoreKv(type_, k + head * head_dim_, head_dim_,
                     buffer_.data() + Offset(layer, 0, head) + at);
    kernels::StoreKv(type_, v + head * head_dim_, head_dim_,
                     buffer_.data() + Offset(layer, 1, head) + at);
  }
}

kernels::KvHeadView KvCache::Head(size_t layer, size_t kv_head) const {
  return {.type = type_,
          .keys = buffer_.data() + Offset(layer, 0, kv_head),
          .values = buffer_.data() + Offset(layer, 1, kv_head),
          .head_dim = head_dim_};
}

size_t KvCache::Offset(size_t layer, size_t part, size_t kv_head) const {
  return ((layer * 2 + part) * num_kv_heads_ + kv_head) * capacity_ *
         vector_bytes_;
}

}  // namespace muster::runtime

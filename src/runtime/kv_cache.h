// Keys and values of one sequence, all layers.
#pragma once

#include <cstddef>

#include "kernels/attention.h"
#include "model/config.h"
#include "tensor/aligned_buffer.h"

namespace muster::runtime {

// One thread writes; readers of earlier positions may run beside it.
class KvCache {
 public:
  // Memory is taken at once and touched as positions are stored.
  KvCache(const model::ModelConfig& config, size_t capacity,
          kernels::KvType type);

  static size_t SizeBytes(const model::ModelConfig& config, size_t capacity,
                          kernels::KvType type);

  size_t capacity() const { return capacity_; }  // positions
  size_t size_bytes() const { return buffer_.size_bytes(); }

  // Stores one position of one layer.   k, v: [num_kv_heads, head_dim]
  // REQUIRES: position < capacity().
  void Store(size_t layer, size_t position, const float* k, const float* v);

  kernels::KvHeadView Head(size_t layer, size_t kv_head) const;

 private:
  // Layout: [layer][key or value][kv_head][position] vectors.
  size_t Offset(size_t layer, size_t part, size_t kv_head) const;

  size_t num_kv_heads_;
  size_t head_dim_;
  size_t capacity_;
  kernels::KvType type_;
  size_t vector_bytes_;
  AlignedBuffer buffer_;
};

}  // namespace muster::runtime

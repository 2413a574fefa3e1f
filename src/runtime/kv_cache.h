// Keys and values of one sequence, all layers.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "kernels/kv_tiles.h"
#include "model/config.h"
#include "tensor/aligned_buffer.h"

namespace muster::runtime {

// Threads may store different positions at once. No thread may read a layer
// while another stores in it: neighbouring positions share tiles.
class KvCache {
 public:
  // Fails with kInvalidArgument when the model's heads do not fit the type.
  static Status CheckType(const model::ModelConfig& config,
                          kernels::KvType type);

  // Memory is taken at once and touched as positions are stored.
  // REQUIRES: CheckType is ok.
  KvCache(const model::ModelConfig& config, size_t capacity,
          kernels::KvType type);

  static size_t BytesPerPosition(const model::ModelConfig& config,
                                 kernels::KvType type);

  // What a cache of `capacity` positions takes.
  static uint64_t SizeBytes(const model::ModelConfig& config, size_t capacity,
                            kernels::KvType type);

  size_t capacity() const { return capacity_; }  // positions
  size_t size_bytes() const { return buffer_.size_bytes(); }

  // Stores one position of one layer.   k, v: [num_kv_heads, head_dim]
  // REQUIRES: position < capacity().
  void Store(size_t layer, size_t position, const float* k, const float* v);

  kernels::KvHeadView Head(size_t layer, size_t kv_head) const;

 private:
  // Layout: [layer][key or value][kv_head][position / 32] tiles.
  size_t Offset(size_t layer, size_t part, size_t kv_head) const;

  size_t num_kv_heads_;
  size_t head_dim_;
  size_t capacity_;
  kernels::KvType type_;
  size_t tile_bytes_;
  size_t head_bytes_;  // of the keys or the values of one head in one layer
  AlignedBuffer buffer_;
};

}  // namespace muster::runtime

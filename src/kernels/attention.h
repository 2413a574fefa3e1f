// Attention of one query head over the cached keys and values of one KV head.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::kernels {

// How cached keys and values are stored.
enum class KvType : uint8_t {
  kF32,
  kF16,  // rounded to nearest even
  kQ8,   // Q8_0 blocks: 32 int8 with a float16 scale; head_dim % 32 == 0
};

// Bytes of one vector of head_dim elements.
size_t KvVectorBytes(KvType type, size_t head_dim);

// Stores one head's key or value.   x: [head_dim]
// F16 beyond 65504 becomes infinity. A block of Q8 that holds NaN, infinity or
// more than its scale can reach becomes NaN as a whole. Thread-safe.
void StoreKv(KvType type, const float* x, size_t head_dim, std::byte* out);

// Positions [0, num_positions) of one KV head; vector p is at
// keys + p * vector_bytes.
struct KvHeadView {
  KvType type = KvType::kF16;
  const std::byte* keys = nullptr;
  const std::byte* values = nullptr;
  size_t head_dim = 0;
};

// out = softmax(scale * q K^T over positions [begin, end)) V.
// q, out: [head_dim]; scores: [end - begin], scratch. The order of additions is
// defined by begin, end and head_dim alone. Thread-safe.
// REQUIRES: begin < end.
void AttendHead(const float* q, const KvHeadView& kv, size_t begin, size_t end,
                float scale, float* scores, float* out);

// The definition in double. Tests compare to this.
void AttendHeadReference(const float* q, const KvHeadView& kv, size_t begin,
                         size_t end, float scale, float* out);

}  // namespace muster::kernels

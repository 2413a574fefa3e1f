#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/dequantize.h"
#include "kernels/elementwise.h"
#include "tensor/blocks.h"
#include "tensor/float16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// Elements [i, i + 16) of a stored vector; zeros beyond head_dim.
HWY_INLINE F32x16 LoadKv(KvType type, const std::byte* vector, size_t i,
                         size_t head_dim) {
  const size_t left = head_dim - i;
  switch (type) {
    case KvType::kF32: {
      const float* p = reinterpret_cast<const float*>(vector) + i;
      return left >= 16 ? Load16(p) : LoadPartial16(p, left);
    }
    case KvType::kF16: {
      const uint16_t* p = reinterpret_cast<const uint16_t*>(vector) + i;
      if (left >= 16) return LoadF16x16(p);
      uint16_t padded[16] = {};
      std::memcpy(padded, p, left * sizeof(uint16_t));
      return LoadF16x16(padded);
    }
    case KvType::kQ8: {
      const auto* block =
          reinterpret_cast<const BlockQ8_0*>(vector) + i / 32;
      return Mul16(LoadI8x16(block->qs + i % 32), Set16(F16ToF32(block->d)));
    }
  }
  return Zero16();
}

template <KvType kType>
HWY_INLINE void AttendTyped(const float* q, const KvHeadView& kv, size_t begin,
                            size_t end, float scale, float* scores,
                            float* out) {
  const size_t dim = kv.head_dim;
  const size_t vector_bytes = KvVectorBytes(kType, dim);
  for (size_t p = begin; p < end; ++p) {
    const std::byte* key = kv.keys + p * vector_bytes;
    F32x16 sum = Zero16();
    for (size_t i = 0; i < dim; i += 16) {
      const F32x16 query = dim - i >= 16 ? Load16(q + i)
                                         : LoadPartial16(q + i, dim - i);
      sum = MulAdd16(LoadKv(kType, key, i, dim), query, sum);
    }
    scores[p - begin] = ReduceAdd16(sum) * scale;
  }
  kernels::Softmax(scores, end - begin);
  std::fill(out, out + dim, 0.0f);
  // Four registers of the output at a time; positions in order.
  constexpr size_t kBlock = 4;
  for (size_t i = 0; i < dim; i += 16 * kBlock) {
    F32x16 sum[kBlock] = {Zero16(), Zero16(), Zero16(), Zero16()};
    const size_t blocks = std::min(kBlock, (dim - i + 15) / 16);
    for (size_t p = begin; p < end; ++p) {
      const std::byte* value = kv.values + p * vector_bytes;
      const F32x16 weight = Set16(scores[p - begin]);
      for (size_t b = 0; b < blocks; ++b) {
        sum[b] = MulAdd16(LoadKv(kType, value, i + 16 * b, dim), weight, sum[b]);
      }
    }
    for (size_t b = 0; b < blocks; ++b) {
      const size_t at = i + 16 * b;
      if (dim - at >= 16) {
        Store16(sum[b], out + at);
      } else {
        StorePartial16(sum[b], out + at, dim - at);
      }
    }
  }
}

void AttendHead(const float* q, const KvHeadView& kv, size_t begin, size_t end,
                float scale, float* scores, float* out) {
  switch (kv.type) {
    case KvType::kF32:
      return AttendTyped<KvType::kF32>(q, kv, begin, end, scale, scores, out);
    case KvType::kF16:
      return AttendTyped<KvType::kF16>(q, kv, begin, end, scale, scores, out);
    case KvType::kQ8:
      return AttendTyped<KvType::kQ8>(q, kv, begin, end, scale, scores, out);
  }
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(AttendHead);

size_t KvVectorBytes(KvType type, size_t head_dim) {
  switch (type) {
    case KvType::kF32:
      return head_dim * sizeof(float);
    case KvType::kF16:
      return head_dim * sizeof(uint16_t);
    case KvType::kQ8:
      return SizeBytes(DType::kQ8_0, head_dim);
  }
  return 0;
}

namespace {

// As ggml quantises: scale = max|x| / 127, stored as float16.
void StoreQ8(const float* x, size_t head_dim, BlockQ8_0* blocks) {
  for (size_t b = 0; b < head_dim / 32; ++b) {
    const float* group = x + b * 32;
    float largest = 0;
    for (size_t i = 0; i < 32; ++i) {
      largest = std::max(largest, std::fabs(group[i]));
    }
    blocks[b].d = F32ToF16(largest / 127.0f);
    const float d = F16ToF32(blocks[b].d);
    const float inverse = d > 0 ? 1.0f / d : 0.0f;
    for (size_t i = 0; i < 32; ++i) {
      const float rounded = std::nearbyint(group[i] * inverse);
      blocks[b].qs[i] =
          static_cast<int8_t>(std::clamp(rounded, -127.0f, 127.0f));
    }
  }
}

}  // namespace

void StoreKv(KvType type, const float* x, size_t head_dim, std::byte* out) {
  switch (type) {
    case KvType::kF32:
      std::memcpy(out, x, head_dim * sizeof(float));
      return;
    case KvType::kF16:
      for (size_t i = 0; i < head_dim; ++i) {
        const uint16_t half = F32ToF16(x[i]);
        std::memcpy(out + i * sizeof(half), &half, sizeof(half));
      }
      return;
    case KvType::kQ8:
      return StoreQ8(x, head_dim, reinterpret_cast<BlockQ8_0*>(out));
  }
}

void AttendHead(const float* q, const KvHeadView& kv, size_t begin, size_t end,
                float scale, float* scores, float* out) {
  CHECK_LT(begin, end);
  HWY_DYNAMIC_DISPATCH(AttendHead)(q, kv, begin, end, scale, scores, out);
}

void AttendHeadReference(const float* q, const KvHeadView& kv, size_t begin,
                         size_t end, float scale, float* out) {
  const size_t dim = kv.head_dim;
  const size_t vector_bytes = KvVectorBytes(kv.type, dim);
  const DType stored = kv.type == KvType::kF32   ? DType::kF32
                       : kv.type == KvType::kF16 ? DType::kF16
                                                 : DType::kQ8_0;
  std::vector<float> vector(dim);
  std::vector<double> weights(end - begin);
  double largest = -1e300;
  for (size_t p = begin; p < end; ++p) {
    Dequantize(stored, kv.keys + p * vector_bytes, dim, vector.data());
    double dot = 0;
    for (size_t i = 0; i < dim; ++i) dot += double{q[i]} * vector[i];
    weights[p - begin] = dot * scale;
    largest = std::max(largest, weights[p - begin]);
  }
  double sum = 0;
  for (double& w : weights) sum += w = std::exp(w - largest);
  std::vector<double> result(dim, 0.0);
  for (size_t p = begin; p < end; ++p) {
    Dequantize(stored, kv.values + p * vector_bytes, dim, vector.data());
    for (size_t i = 0; i < dim; ++i) {
      result[i] += weights[p - begin] / sum * vector[i];
    }
  }
  for (size_t i = 0; i < dim; ++i) out[i] = static_cast<float>(result[i]);
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

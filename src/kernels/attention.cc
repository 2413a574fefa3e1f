#include "kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/dequantize.h"
#include "kernels/elementwise.h"
#include "tensor/blocks.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// Elements [i, i + 16) of a stored vector, all of which exist.
template <KvType kType>
HWY_INLINE F32x16 LoadKv(const std::byte* vector, size_t i) {
  if constexpr (kType == KvType::kF32) {
    return Load16(reinterpret_cast<const float*>(vector) + i);
  } else if constexpr (kType == KvType::kF16) {
    return LoadF16x16(reinterpret_cast<const uint16_t*>(vector) + i);
  } else {
    const auto* block = reinterpret_cast<const BlockQ8_0*>(vector) + i / 32;
    return Mul16(LoadI8x16(block->qs + i % 32), Set16(HalfToFloat(block->d)));
  }
}

// Elements [i, i + left), zeros in the other lanes. REQUIRES: left < 16.
template <KvType kType>
HWY_INLINE F32x16 LoadKvTail(const std::byte* vector, size_t i, size_t left) {
  static_assert(kType != KvType::kQ8);  // has whole blocks
  if constexpr (kType == KvType::kF32) {
    return LoadPartial16(reinterpret_cast<const float*>(vector) + i, left);
  } else {
    uint16_t padded[16] = {};
    std::memcpy(padded, vector + i * sizeof(uint16_t), left * sizeof(uint16_t));
    return LoadF16x16(padded);
  }
}

// scores[p - begin] = scale * q . k of position p. One accumulator of 16 lanes:
// the positions are independent of each other and overlap.
template <KvType kType>
HWY_INLINE void Scores(const float* HWY_RESTRICT q, const KvHeadView& kv,
                       size_t begin, size_t end, float scale,
                       float* HWY_RESTRICT scores) {
  const size_t dim = kv.head_dim;
  const size_t whole = dim / 16 * 16;
  const size_t vector_bytes = KvVectorBytes(kType, dim);
  const std::byte* key = kv.keys + begin * vector_bytes;
  for (size_t p = begin; p < end; ++p, key += vector_bytes) {
    F32x16 sum = Zero16();
    for (size_t i = 0; i < whole; i += 16) {
      sum = MulAdd16(LoadKv<kType>(key, i), Load16(q + i), sum);
    }
    if constexpr (kType != KvType::kQ8) {
      if (whole < dim) {
        sum = MulAdd16(LoadKvTail<kType>(key, whole, dim - whole),
                       LoadPartial16(q + whole, dim - whole), sum);
      }
    }
    scores[p - begin] = ReduceAdd16(sum) * scale;
  }
}

// out[0, 16 * kBlocks) = sum of weights[p - begin] * elements [i, ...) of the
// value of position p, positions in order, sums in registers.
template <KvType kType, size_t kBlocks>
HWY_INLINE void WeightedValues(const KvHeadView& kv, size_t i, size_t begin,
                               size_t end, const float* HWY_RESTRICT weights,
                               float* HWY_RESTRICT out) {
  const size_t vector_bytes = KvVectorBytes(kType, kv.head_dim);
  const std::byte* value = kv.values + begin * vector_bytes;
  F32x16 sum[kBlocks];
  for (size_t b = 0; b < kBlocks; ++b) sum[b] = Zero16();
  for (size_t p = begin; p < end; ++p, value += vector_bytes) {
    const F32x16 weight = Set16(weights[p - begin]);
    for (size_t b = 0; b < kBlocks; ++b) {
      sum[b] = MulAdd16(LoadKv<kType>(value, i + 16 * b), weight, sum[b]);
    }
  }
  for (size_t b = 0; b < kBlocks; ++b) Store16(sum[b], out + 16 * b);
}

// The last elements of a head_dim that is not a multiple of 16.
template <KvType kType>
HWY_INLINE void WeightedTail(const KvHeadView& kv, size_t i, size_t begin,
                             size_t end, const float* HWY_RESTRICT weights,
                             float* HWY_RESTRICT out) {
  const size_t left = kv.head_dim - i;
  const size_t vector_bytes = KvVectorBytes(kType, kv.head_dim);
  F32x16 sum = Zero16();
  for (size_t p = begin; p < end; ++p) {
    const std::byte* value = kv.values + p * vector_bytes;
    sum = MulAdd16(LoadKvTail<kType>(value, i, left), Set16(weights[p - begin]),
                   sum);
  }
  StorePartial16(sum, out, left);
}

template <KvType kType>
HWY_INLINE void AttendTyped(const float* q, const KvHeadView& kv, size_t begin,
                            size_t end, float scale, float* scores,
                            float* out) {
  Scores<kType>(q, kv, begin, end, scale, scores);
  kernels::Softmax(scores, end - begin);
  // As many sums as half of the registers hold.
  constexpr size_t kBlocks = kParts == 1 ? 8 : 4;
  const size_t dim = kv.head_dim;
  size_t i = 0;
  for (; i + 16 * kBlocks <= dim; i += 16 * kBlocks) {
    WeightedValues<kType, kBlocks>(kv, i, begin, end, scores, out + i);
  }
  for (; i + 64 <= dim; i += 64) {
    WeightedValues<kType, 4>(kv, i, begin, end, scores, out + i);
  }
  for (; i + 16 <= dim; i += 16) {
    WeightedValues<kType, 1>(kv, i, begin, end, scores, out + i);
  }
  if constexpr (kType != KvType::kQ8) {
    if (i < dim) WeightedTail<kType>(kv, i, begin, end, scores, out + i);
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

// One super-block of any quantised type as 256 small integers with a scale (and
// a min) per 16: the one form that the dot product knows.
//
// Plain loops: this header is compiled once per instruction set, and the
// compiler vectorises them for it.
#if defined(MUSTER_KERNELS_UNPACK_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MUSTER_KERNELS_UNPACK_H_
#undef MUSTER_KERNELS_UNPACK_H_
#else
#define MUSTER_KERNELS_UNPACK_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "tensor/blocks.h"
#include "tensor/dtype.h"
#include "tensor/float16.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// w[i] = scale[i / 16] * q[i] - min[i / 16]
struct alignas(64) Tile {
  int8_t q[256];
  float scale[16];
  float min[16];  // not written by types without mins
};

HWY_INLINE float HalfToFloat(uint16_t h) {
#if HWY_TARGET <= HWY_AVX2
  return _cvtsh_ss(h);
#else
  return F16ToF32(h);
#endif
}

// Element i of 2 * kNum from low nibbles, element i + kNum from high ones.
template <size_t kNum>
HWY_INLINE void SplitNibbles(const uint8_t* HWY_RESTRICT qs, int offset,
                             int8_t* HWY_RESTRICT q) {
#if HWY_TARGET <= HWY_AVX2
  const __m128i mask = _mm_set1_epi8(15);
  const __m128i minus = _mm_set1_epi8(static_cast<char>(offset));
  for (size_t i = 0; i < kNum; i += 16) {
    const __m128i bytes =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(qs + i));
    const __m128i low = _mm_and_si128(bytes, mask);
    const __m128i high = _mm_and_si128(_mm_srli_epi16(bytes, 4), mask);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + i),
                     _mm_sub_epi8(low, minus));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q + i + kNum),
                     _mm_sub_epi8(high, minus));
  }
#else
  for (size_t i = 0; i < kNum; ++i) {
    q[i] = static_cast<int8_t>((qs[i] & 15) - offset);
    q[i + kNum] = static_cast<int8_t>((qs[i] >> 4) - offset);
  }
#endif
}

HWY_INLINE void LookUpNibbles(const uint8_t* HWY_RESTRICT qs,
                              const int8_t* HWY_RESTRICT values,
                              int8_t* HWY_RESTRICT q) {
#if HWY_TARGET <= HWY_AVX2
  const __m128i table =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(qs));
  const __m128i mask = _mm_set1_epi8(15);
  const __m128i low = _mm_shuffle_epi8(table, _mm_and_si128(bytes, mask));
  const __m128i high =
      _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(bytes, 4), mask));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q), low);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(q + 16), high);
#else
  for (size_t i = 0; i < 16; ++i) {
    q[i] = values[qs[i] & 15];
    q[i + 16] = values[qs[i] >> 4];
  }
#endif
}

// Adds 16 to element i where bit i of `high` is set, then takes `offset` away.
HWY_INLINE void AddFifthBits(const uint8_t qh[4], int offset,
                             int8_t* HWY_RESTRICT q) {
  uint32_t high;
  std::memcpy(&high, qh, 4);
#if HWY_TARGET <= HWY_AVX2
  // Byte i of the vector looks at bit i: each byte of `high` serves 8 bytes.
  const __m256i spread = _mm256_shuffle_epi8(
      _mm256_set1_epi32(static_cast<int>(high)),
      _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                         0x0303030303030303));
  const __m256i bit =
      _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201));
  const __m256i is_set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);
  auto* vector = reinterpret_cast<__m256i*>(q);
  const __m256i sum =
      _mm256_add_epi8(_mm256_loadu_si256(vector),
                      _mm256_and_si256(is_set, _mm256_set1_epi8(16)));
  _mm256_storeu_si256(
      vector,
      _mm256_sub_epi8(sum, _mm256_set1_epi8(static_cast<char>(offset))));
#else
  for (size_t i = 0; i < 32; ++i) {
    q[i] = static_cast<int8_t>(q[i] + static_cast<int>((high >> i & 1) << 4) -
                               offset);
  }
#endif
}

// The blocks of 32 write one group; scale[0..1] and min[0..1] are the group's.

HWY_INLINE void UnpackGroup(const BlockQ4_0& b, int8_t* q, float* scale,
                            float*) {
  SplitNibbles<16>(b.qs, 8, q);
  scale[0] = scale[1] = HalfToFloat(b.d);
}
HWY_INLINE void UnpackGroup(const BlockQ4_1& b, int8_t* q, float* scale,
                            float* min) {
  SplitNibbles<16>(b.qs, 0, q);
  scale[0] = scale[1] = HalfToFloat(b.d);
  min[0] = min[1] = -HalfToFloat(b.m);
}
HWY_INLINE void UnpackGroup(const BlockQ5_0& b, int8_t* q, float* scale,
                            float*) {
  SplitNibbles<16>(b.qs, 0, q);
  AddFifthBits(b.qh, 16, q);
  scale[0] = scale[1] = HalfToFloat(b.d);
}
HWY_INLINE void UnpackGroup(const BlockQ5_1& b, int8_t* q, float* scale,
                            float* min) {
  SplitNibbles<16>(b.qs, 0, q);
  AddFifthBits(b.qh, 0, q);
  scale[0] = scale[1] = HalfToFloat(b.d);
  min[0] = min[1] = -HalfToFloat(b.m);
}
HWY_INLINE void UnpackGroup(const BlockQ8_0& b, int8_t* q, float* scale,
                            float*) {
  std::memcpy(q, b.qs, 32);
  scale[0] = scale[1] = HalfToFloat(b.d);
}
HWY_INLINE void UnpackGroup(const BlockIQ4_NL& b, int8_t* q, float* scale,
                            float*) {
  LookUpNibbles(b.qs, kIq4Values, q);
  scale[0] = scale[1] = HalfToFloat(b.d);
}
HWY_INLINE void UnpackGroup(const BlockMXFP4& b, int8_t* q, float* scale,
                            float*) {
  LookUpNibbles(b.qs, kMxfp4Values, q);
  const uint32_t bits =
      b.e < 2 ? 0x00200000u << b.e : static_cast<uint32_t>(b.e - 1) << 23;
  scale[0] = scale[1] = std::bit_cast<float>(bits);
}

// The super-blocks write a whole tile.

HWY_INLINE void UnpackTile(const BlockQ2_K& b, Tile& tile) {
  const float d = HalfToFloat(b.d), dmin = HalfToFloat(b.dmin);
  for (size_t g = 0; g < 16; ++g) {
    tile.scale[g] = d * static_cast<float>(b.scales[g] & 15);
    tile.min[g] = dmin * static_cast<float>(b.scales[g] >> 4);
  }
  for (size_t part = 0; part < 8; ++part) {
    const uint8_t* HWY_RESTRICT qs = b.qs + part / 4 * 32;
    const int shift = static_cast<int>(part % 4) * 2;
    for (size_t i = 0; i < 32; ++i) {
      tile.q[part * 32 + i] = static_cast<int8_t>(qs[i] >> shift & 3);
    }
  }
}

HWY_INLINE void UnpackTile(const BlockQ3_K& b, Tile& tile) {
  const float d = HalfToFloat(b.d);
  for (int g = 0; g < 16; ++g) {
    tile.scale[g] = d * static_cast<float>(Q3Scale(b.scales, g));
  }
  for (size_t part = 0; part < 8; ++part) {
    const uint8_t* HWY_RESTRICT qs = b.qs + part / 4 * 32;
    const int shift = static_cast<int>(part % 4) * 2;
    for (size_t i = 0; i < 32; ++i) {
      const int low = qs[i] >> shift & 3;
      const int high = b.hmask[i] >> part & 1;
      tile.q[part * 32 + i] = static_cast<int8_t>(low + 4 * high - 4);
    }
  }
}

HWY_INLINE void SetScalesAndMins(const uint8_t scales[12], float d, float dmin,
                                 Tile& tile) {
  for (int g = 0; g < 8; ++g) {
    const ScaleMin sm = ScaleMinOf(scales, g);
    tile.scale[2 * g] = tile.scale[2 * g + 1] =
        d * static_cast<float>(sm.scale);
    tile.min[2 * g] = tile.min[2 * g + 1] = dmin * static_cast<float>(sm.min);
  }
}

HWY_INLINE void UnpackTile(const BlockQ4_K& b, Tile& tile) {
  SetScalesAndMins(b.scales, HalfToFloat(b.d), HalfToFloat(b.dmin), tile);
  for (size_t pair = 0; pair < 4; ++pair) {
    SplitNibbles<32>(b.qs + pair * 32, 0, tile.q + pair * 64);
  }
}

HWY_INLINE void UnpackTile(const BlockQ5_K& b, Tile& tile) {
  SetScalesAndMins(b.scales, HalfToFloat(b.d), HalfToFloat(b.dmin), tile);
  for (size_t pair = 0; pair < 4; ++pair) {
    SplitNibbles<32>(b.qs + pair * 32, 0, tile.q + pair * 64);
    for (size_t i = 0; i < 32; ++i) {
      const int high = b.qh[i] >> (2 * pair);
      int8_t* q = tile.q + pair * 64;
      q[i] = static_cast<int8_t>(q[i] | (high & 1) << 4);
      q[i + 32] = static_cast<int8_t>(q[i + 32] | (high >> 1 & 1) << 4);
    }
  }
}

HWY_INLINE void UnpackTile(const BlockQ6_K& b, Tile& tile) {
  const float d = HalfToFloat(b.d);
  for (size_t g = 0; g < 16; ++g) {
    tile.scale[g] = d * static_cast<float>(b.scales[g]);
  }
  for (size_t half = 0; half < 2; ++half) {
    const uint8_t* HWY_RESTRICT ql = b.ql + half * 64;
    const uint8_t* HWY_RESTRICT qh = b.qh + half * 32;
    int8_t* HWY_RESTRICT q = tile.q + half * 128;
    for (size_t i = 0; i < 32; ++i) {
      q[i] = static_cast<int8_t>(((ql[i] & 15) | (qh[i] & 3) << 4) - 32);
      q[i + 32] =
          static_cast<int8_t>(((ql[i + 32] & 15) | (qh[i] >> 2 & 3) << 4) - 32);
      q[i + 64] =
          static_cast<int8_t>((ql[i] >> 4 | (qh[i] >> 4 & 3) << 4) - 32);
      q[i + 96] =
          static_cast<int8_t>((ql[i + 32] >> 4 | (qh[i] >> 6) << 4) - 32);
    }
  }
}

HWY_INLINE void UnpackTile(const BlockIQ4_XS& b, Tile& tile) {
  const float d = HalfToFloat(b.d);
  for (int g = 0; g < 8; ++g) {
    tile.scale[2 * g] = tile.scale[2 * g + 1] =
        d * static_cast<float>(Iq4XsScale(b, g));
    LookUpNibbles(b.qs + g * 16, kIq4Values, tile.q + g * 32);
  }
}

// Which block type a DType is, and whether it has mins and stays above zero.
template <DType kType>
struct BlockOf;
template <>
struct BlockOf<DType::kQ4_0> {
  using Type = BlockQ4_0;
};
template <>
struct BlockOf<DType::kQ4_1> {
  using Type = BlockQ4_1;
};
template <>
struct BlockOf<DType::kQ5_0> {
  using Type = BlockQ5_0;
};
template <>
struct BlockOf<DType::kQ5_1> {
  using Type = BlockQ5_1;
};
template <>
struct BlockOf<DType::kQ8_0> {
  using Type = BlockQ8_0;
};
template <>
struct BlockOf<DType::kQ2_K> {
  using Type = BlockQ2_K;
};
template <>
struct BlockOf<DType::kQ3_K> {
  using Type = BlockQ3_K;
};
template <>
struct BlockOf<DType::kQ4_K> {
  using Type = BlockQ4_K;
};
template <>
struct BlockOf<DType::kQ5_K> {
  using Type = BlockQ5_K;
};
template <>
struct BlockOf<DType::kQ6_K> {
  using Type = BlockQ6_K;
};
template <>
struct BlockOf<DType::kIQ4_NL> {
  using Type = BlockIQ4_NL;
};
template <>
struct BlockOf<DType::kIQ4_XS> {
  using Type = BlockIQ4_XS;
};
template <>
struct BlockOf<DType::kMXFP4> {
  using Type = BlockMXFP4;
};

// Types whose integers are 0..31 and whose zero is a min.
constexpr bool HasMins(DType type) {
  return type == DType::kQ4_1 || type == DType::kQ5_1 || type == DType::kQ2_K ||
         type == DType::kQ4_K || type == DType::kQ5_K;
}
constexpr bool IsSuperBlock(DType type) {
  return type == DType::kQ2_K || type == DType::kQ3_K || type == DType::kQ4_K ||
         type == DType::kQ5_K || type == DType::kQ6_K || type == DType::kIQ4_XS;
}

// Tile `t` of a row of `cols` elements. Beyond the row's end, where a row of
// 32-blocks stops inside the tile, everything is zero.
template <DType kType>
HWY_INLINE void UnpackTileOfRow(const std::byte* row, size_t t, size_t cols,
                                Tile& tile) {
  using Block = typename BlockOf<kType>::Type;
  if constexpr (IsSuperBlock(kType)) {
    UnpackTile(*reinterpret_cast<const Block*>(row + t * sizeof(Block)), tile);
  } else {
    const auto* blocks = reinterpret_cast<const Block*>(row) + t * 8;
    const size_t groups = (cols - t * 256) / 32 < 8 ? (cols - t * 256) / 32 : 8;
    for (size_t g = 0; g < groups; ++g) {
      UnpackGroup(blocks[g], tile.q + g * 32, tile.scale + 2 * g,
                  tile.min + 2 * g);
    }
    if (groups == 8) return;
    std::memset(tile.q + groups * 32, 0, 256 - groups * 32);
    for (size_t i = 2 * groups; i < 16; ++i) tile.scale[i] = tile.min[i] = 0;
  }
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle

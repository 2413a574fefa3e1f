// Dot products of one tile of weights, or one row of floats, with activations.
// The order of additions is fixed here and nowhere else:
//   quantised: lane l of a pair of 32-groups sums bytes 4l..4l+3 exactly in
//     integers, is scaled, and is added to float lane l; tiles in order. Mins
//     have 16 lanes of their own, one per group of 16.
//   floats: four accumulators of 16 lanes take 64 columns in turn.
#if defined(MUSTER_KERNELS_DOT_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MUSTER_KERNELS_DOT_H_
#undef MUSTER_KERNELS_DOT_H_
#else
#define MUSTER_KERNELS_DOT_H_
#endif

#include "kernels/simd.h"
#include "kernels/unpack.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// What one output element gathers over the tiles of its row.
struct TileSum {
  F32x16 products;
  F32x16 mins;
};

HWY_INLINE TileSum ZeroSum() { return {Zero16(), Zero16()}; }

HWY_INLINE float Finish(const TileSum& sum, bool has_mins) {
  const float products = ReduceAdd16(sum.products);
  return has_mins ? products - ReduceAdd16(sum.mins) : products;
}

#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3

#if HWY_TARGET == HWY_AVX3_DL
// Lane l: sum of a[4l..4l+3] * b[4l..4l+3], a unsigned, b signed. Spelled as
// assembly because Highway 1.0.3 does not switch AVX-512 VNNI on for its
// target.
HWY_INLINE __m512i DotU8I8(__m512i a, __m512i b) {
  __m512i sum = _mm512_setzero_si512();
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}
#endif

// Lane l: sum of w[4l..4l+3] * x[4l..4l+3], 64 bytes each.
// kSigned: weights in [-128, 127]; else in [0, 31].
template <bool kSigned>
HWY_INLINE __m512i DotBytes(__m512i w, __m512i x) {
#if HWY_TARGET == HWY_AVX3_DL
  if constexpr (kSigned) {  // (x + 128) . w - 128 . w, in unsigned x signed
    const __m512i bias = _mm512_set1_epi8(static_cast<char>(0x80));
    return _mm512_sub_epi32(DotU8I8(_mm512_xor_si512(x, bias), w),
                            DotU8I8(bias, w));
  } else {
    return DotU8I8(w, x);
  }
#else
  const __m512i ones = _mm512_set1_epi16(1);
  if constexpr (kSigned) {  // |w| . (x with w's sign): pairs stay below 2^15
    const __mmask64 negative = _mm512_movepi8_mask(w);
    const __m512i signed_x =
        _mm512_mask_sub_epi8(x, negative, _mm512_setzero_si512(), x);
    return _mm512_madd_epi16(_mm512_maddubs_epi16(_mm512_abs_epi8(w), signed_x),
                             ones);
  } else {
    return _mm512_madd_epi16(_mm512_maddubs_epi16(w, x), ones);
  }
#endif
}

template <bool kSigned, bool kHasMins>
HWY_INLINE void DotTile(const Tile& tile, const int8_t* HWY_RESTRICT x,
                        const float* HWY_RESTRICT x_scale,
                        const int16_t* HWY_RESTRICT x_sums, TileSum& sum) {
  const __m512 xs = _mm512_loadu_ps(x_scale);
  const __m512 scales = _mm512_mul_ps(_mm512_load_ps(tile.scale), xs);
  __m512i lanes =
      _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
  __m512 acc = sum.products.part[0].raw;
  for (size_t pair = 0; pair < 4; ++pair) {
    const __m512i dot = DotBytes<kSigned>(_mm512_load_si512(tile.q + pair * 64),
                                          _mm512_loadu_si512(x + pair * 64));
    acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot),
                          _mm512_permutexvar_ps(lanes, scales), acc);
    lanes = _mm512_add_epi32(lanes, _mm512_set1_epi32(4));
  }
  sum.products.part[0] = FloatVec{acc};
  if constexpr (kHasMins) {
    const __m512i sums16 = _mm512_cvtepi16_epi32(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x_sums)));
    const __m512 mins = _mm512_mul_ps(_mm512_load_ps(tile.min), xs);
    sum.mins.part[0] = FloatVec{_mm512_fmadd_ps(_mm512_cvtepi32_ps(sums16),
                                                mins, sum.mins.part[0].raw)};
  }
}

#elif HWY_TARGET == HWY_AVX2

template <bool kSigned>
HWY_INLINE __m256i DotBytes(__m256i w, __m256i x) {
  const __m256i ones = _mm256_set1_epi16(1);
  if constexpr (kSigned) {  // |w| . (x with w's sign): pairs stay below 2^15
    return _mm256_madd_epi16(
        _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)), ones);
  } else {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(w, x), ones);
  }
}

template <bool kSigned, bool kHasMins>
HWY_INLINE void DotTile(const Tile& tile, const int8_t* HWY_RESTRICT x,
                        const float* HWY_RESTRICT x_scale,
                        const int16_t* HWY_RESTRICT x_sums, TileSum& sum) {
  alignas(32) float scales[16];
  for (size_t half = 0; half < 2; ++half) {
    _mm256_store_ps(scales + half * 8,
                    _mm256_mul_ps(_mm256_load_ps(tile.scale + half * 8),
                                  _mm256_loadu_ps(x_scale + half * 8)));
  }
  for (size_t group = 0; group < 8; ++group) {
    const __m256i dot = DotBytes<kSigned>(
        _mm256_load_si256(
            reinterpret_cast<const __m256i*>(tile.q + group * 32)),
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + group * 32)));
    const __m256 scale =
        _mm256_set_m128(_mm_broadcast_ss(scales + 2 * group + 1),
                        _mm_broadcast_ss(scales + 2 * group));
    FloatVec& acc = sum.products.part[group % 2];
    acc = FloatVec{_mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), scale, acc.raw)};
  }
  if constexpr (kHasMins) {
    const F32x16 mins = Mul16(Load16(tile.min), Load16(x_scale));
    sum.mins = MulAdd16(LoadI16x16(x_sums), mins, sum.mins);
  }
}

#else  // the plain reference

template <bool kSigned, bool kHasMins>
HWY_INLINE void DotTile(const Tile& tile, const int8_t* HWY_RESTRICT x,
                        const float* HWY_RESTRICT x_scale,
                        const int16_t* HWY_RESTRICT x_sums, TileSum& sum) {
  for (size_t pair = 0; pair < 4; ++pair) {
    alignas(64) float dots[16], scales[16];
    for (size_t lane = 0; lane < 16; ++lane) {
      const size_t at = pair * 64 + lane * 4;
      int dot = 0;
      for (size_t i = at; i < at + 4; ++i) dot += tile.q[i] * x[i];
      dots[lane] = static_cast<float>(dot);
      scales[lane] = tile.scale[at / 16] * x_scale[at / 16];
    }
    sum.products = MulAdd16(Load16(dots), Load16(scales), sum.products);
  }
  if constexpr (kHasMins) {
    const F32x16 mins = Mul16(Load16(tile.min), Load16(x_scale));
    sum.mins = MulAdd16(LoadI16x16(x_sums), mins, sum.mins);
  }
}

#endif

// Sum of w[c] * x[c] over floats.
HWY_INLINE float DotFloats(const float* HWY_RESTRICT w,
                           const float* HWY_RESTRICT x, size_t cols) {
  F32x16 sum[4] = {Zero16(), Zero16(), Zero16(), Zero16()};
  size_t c = 0;
  for (; c + 64 <= cols; c += 64) {
    for (size_t i = 0; i < 4; ++i) {
      sum[i] = MulAdd16(Load16(w + c + 16 * i), Load16(x + c + 16 * i), sum[i]);
    }
  }
  for (size_t i = 0; c < cols; c += 16, ++i) {
    const size_t left = cols - c;
    sum[i] = left >= 16 ? MulAdd16(Load16(w + c), Load16(x + c), sum[i])
                        : MulAdd16(LoadPartial16(w + c, left),
                                   LoadPartial16(x + c, left), sum[i]);
  }
  return ReduceAdd16(Add16(Add16(sum[0], sum[1]), Add16(sum[2], sum[3])));
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle

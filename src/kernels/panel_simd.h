// The few vector operations that products with panels need, once per
// instruction set. A "part" of a panel is as many rows as a register has 32-bit
// lanes: all 16 with AVX-512, 8 with AVX2, 16 in the plain reference, which is
// arrays and loops. Results do not depend on which: integer sums are exact, and
// every lane is one row with the same float operations in the same order.
#if defined(MUSTER_KERNELS_PANEL_SIMD_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MUSTER_KERNELS_PANEL_SIMD_H_
#undef MUSTER_KERNELS_PANEL_SIMD_H_
#else
#define MUSTER_KERNELS_PANEL_SIMD_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "tensor/float16.h"
#include "tensor/panels.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3

inline constexpr size_t kPartRows = 16;
inline constexpr size_t kTokenBlock = 8;  // tokens whose sums fit in registers
using Bytes = __m512i;                    // [kPartRows, kPanelQuad]
using Ints = __m512i;                     // [kPartRows]
using Floats = __m512;                    // [kPartRows]

HWY_INLINE Bytes LoadBytes(const std::byte* p) { return _mm512_loadu_si512(p); }
HWY_INLINE void StoreBytes(Bytes v, std::byte* p) { _mm512_store_si512(p, v); }
template <int kBits>
HWY_INLINE Bytes ShiftRight(Bytes v) {
  return _mm512_srli_epi16(v, kBits);
}
template <int kBits>
HWY_INLINE Bytes ShiftLeft(Bytes v) {
  return _mm512_slli_epi16(v, kBits);
}
HWY_INLINE Bytes Mask(Bytes v, uint8_t mask) {
  return _mm512_and_si512(v, _mm512_set1_epi8(static_cast<char>(mask)));
}
// base | (v & mask)
HWY_INLINE Bytes OrMasked(Bytes base, Bytes v, uint8_t mask) {
  return _mm512_ternarylogic_epi64(
      base, v, _mm512_set1_epi8(static_cast<char>(mask)), 0xF8);
}
HWY_INLINE Bytes FlipSigns(Bytes v) {
  return _mm512_xor_si512(v, _mm512_set1_epi8(static_cast<char>(0x80)));
}
HWY_INLINE Bytes LookUp(const int8_t* table, Bytes index) {
  const __m128i entries =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(entries), index);
}
// Broadcasts stand in instructions of their own: as an operand of another
// instruction they cost Zen 4 four times as much.
HWY_INLINE Bytes BroadcastQuad(const int8_t* p) {
  Bytes v;
  asm("vpbroadcastd %1, %0" : "=v"(v) : "m"(*reinterpret_cast<const int*>(p)));
  return v;
}
HWY_INLINE Ints BroadcastInt(const int32_t* p) {
  Ints v;
  asm("vpbroadcastd %1, %0" : "=v"(v) : "m"(*p));
  return v;
}
HWY_INLINE Floats BroadcastFloat(const float* p) {
  Floats v;
  asm("vbroadcastss %1, %0" : "=v"(v) : "m"(*p));
  return v;
}
template <int kBits>
HWY_INLINE Ints ShiftLeftInts(Ints v) {
  return _mm512_slli_epi32(v, kBits);
}
HWY_INLINE Ints ZeroInts() { return _mm512_setzero_si512(); }
HWY_INLINE Ints AddInts(Ints a, Ints b) { return _mm512_add_epi32(a, b); }
HWY_INLINE Floats ToFloats(Ints v) { return _mm512_cvtepi32_ps(v); }
HWY_INLINE Floats ZeroFloats() { return _mm512_setzero_ps(); }
HWY_INLINE Floats Multiply(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
HWY_INLINE Floats MulAdd(Floats a, Floats b, Floats c) {
  return _mm512_fmadd_ps(a, b, c);
}
HWY_INLINE Floats NegMulAdd(Floats a, Floats b, Floats c) {
  return _mm512_fnmadd_ps(a, b, c);
}
HWY_INLINE Floats LoadFloats(const float* p) { return _mm512_load_ps(p); }
HWY_INLINE void StoreFloats(Floats v, float* p) { _mm512_storeu_ps(p, v); }
HWY_INLINE Floats LoadHalves(const std::byte* p) {
  return _mm512_cvtph_ps(
      _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
HWY_INLINE Floats LoadBFloats(const std::byte* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(
      _mm512_cvtepu16_epi32(
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))),
      16));
}
HWY_INLINE __m128i LoadCodes(const std::byte* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
HWY_INLINE Floats LoadUnsigned(const std::byte* p) {
  return ToFloats(_mm512_cvtepu8_epi32(LoadCodes(p)));
}
HWY_INLINE Floats LoadSigned(const std::byte* p) {
  return ToFloats(_mm512_cvtepi8_epi32(LoadCodes(p)));
}
HWY_INLINE Floats LoadLowNibbles(const std::byte* p) {
  return ToFloats(_mm512_and_si512(_mm512_cvtepu8_epi32(LoadCodes(p)),
                                   _mm512_set1_epi32(15)));
}
HWY_INLINE Floats LoadHighNibbles(const std::byte* p) {
  return ToFloats(_mm512_srli_epi32(_mm512_cvtepu8_epi32(LoadCodes(p)), 4));
}

#if HWY_TARGET == HWY_AVX3_DL
// Adds a[4l..4l+3] * b[4l..4l+3] to lane l, a unsigned, b signed. Spelled as
// assembly because Highway 1.0.3 does not switch AVX-512 VNNI on for its
// target.
HWY_INLINE Ints DotAdd(Ints sum, Bytes a, Bytes b) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  return sum;
}
#else
HWY_INLINE Ints PairSums(Bytes a, Bytes b) {
  return _mm512_maddubs_epi16(a, b);
}
HWY_INLINE Ints AddPairs(Ints a, Ints b) { return _mm512_add_epi16(a, b); }
HWY_INLINE Ints SumOfPairs(Ints pairs) {
  return _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
}
HWY_INLINE Bytes Magnitudes(Bytes v) { return _mm512_abs_epi8(v); }
HWY_INLINE Bytes WithSignsOf(Bytes v, Bytes signs) {
  return _mm512_mask_sub_epi8(v, _mm512_movepi8_mask(signs),
                              _mm512_setzero_si512(), v);
}
#endif

#elif HWY_TARGET == HWY_AVX2

inline constexpr size_t kPartRows = 8;
inline constexpr size_t kTokenBlock = 4;
using Bytes = __m256i;
using Ints = __m256i;
using Floats = __m256;

HWY_INLINE Bytes LoadBytes(const std::byte* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
HWY_INLINE void StoreBytes(Bytes v, std::byte* p) {
  _mm256_store_si256(reinterpret_cast<__m256i*>(p), v);
}
template <int kBits>
HWY_INLINE Bytes ShiftRight(Bytes v) {
  return _mm256_srli_epi16(v, kBits);
}
template <int kBits>
HWY_INLINE Bytes ShiftLeft(Bytes v) {
  return _mm256_slli_epi16(v, kBits);
}
HWY_INLINE Bytes Mask(Bytes v, uint8_t mask) {
  return _mm256_and_si256(v, _mm256_set1_epi8(static_cast<char>(mask)));
}
HWY_INLINE Bytes OrMasked(Bytes base, Bytes v, uint8_t mask) {
  return _mm256_or_si256(base, Mask(v, mask));
}
HWY_INLINE Bytes FlipSigns(Bytes v) {
  return _mm256_xor_si256(v, _mm256_set1_epi8(static_cast<char>(0x80)));
}
HWY_INLINE Bytes LookUp(const int8_t* table, Bytes index) {
  const __m128i entries =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(entries), index);
}
HWY_INLINE Bytes BroadcastQuad(const int8_t* p) {
  int quad;
  std::memcpy(&quad, p, 4);
  return _mm256_set1_epi32(quad);
}
HWY_INLINE Ints BroadcastInt(const int32_t* p) { return _mm256_set1_epi32(*p); }
HWY_INLINE Floats BroadcastFloat(const float* p) {
  return _mm256_broadcast_ss(p);
}
template <int kBits>
HWY_INLINE Ints ShiftLeftInts(Ints v) {
  return _mm256_slli_epi32(v, kBits);
}
HWY_INLINE Ints ZeroInts() { return _mm256_setzero_si256(); }
HWY_INLINE Ints AddInts(Ints a, Ints b) { return _mm256_add_epi32(a, b); }
HWY_INLINE Floats ToFloats(Ints v) { return _mm256_cvtepi32_ps(v); }
HWY_INLINE Floats ZeroFloats() { return _mm256_setzero_ps(); }
HWY_INLINE Floats Multiply(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
HWY_INLINE Floats MulAdd(Floats a, Floats b, Floats c) {
  return _mm256_fmadd_ps(a, b, c);
}
HWY_INLINE Floats NegMulAdd(Floats a, Floats b, Floats c) {
  return _mm256_fnmadd_ps(a, b, c);
}
HWY_INLINE Floats LoadFloats(const float* p) { return _mm256_load_ps(p); }
HWY_INLINE void StoreFloats(Floats v, float* p) { _mm256_storeu_ps(p, v); }
HWY_INLINE Floats LoadHalves(const std::byte* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
HWY_INLINE Floats LoadBFloats(const std::byte* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(
      _mm256_cvtepu16_epi32(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
      16));
}
HWY_INLINE __m128i LoadCodes(const std::byte* p) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
}
HWY_INLINE Floats LoadUnsigned(const std::byte* p) {
  return ToFloats(_mm256_cvtepu8_epi32(LoadCodes(p)));
}
HWY_INLINE Floats LoadSigned(const std::byte* p) {
  return ToFloats(_mm256_cvtepi8_epi32(LoadCodes(p)));
}
HWY_INLINE Floats LoadLowNibbles(const std::byte* p) {
  return ToFloats(_mm256_and_si256(_mm256_cvtepu8_epi32(LoadCodes(p)),
                                   _mm256_set1_epi32(15)));
}
HWY_INLINE Floats LoadHighNibbles(const std::byte* p) {
  return ToFloats(_mm256_srli_epi32(_mm256_cvtepu8_epi32(LoadCodes(p)), 4));
}
// Lanes of 16 bits: a[2l] * b[2l] + a[2l+1] * b[2l+1], a unsigned, b signed.
HWY_INLINE Ints PairSums(Bytes a, Bytes b) {
  return _mm256_maddubs_epi16(a, b);
}
HWY_INLINE Ints AddPairs(Ints a, Ints b) { return _mm256_add_epi16(a, b); }
// Lanes of 32 bits: the two halves added.
HWY_INLINE Ints SumOfPairs(Ints pairs) {
  return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
HWY_INLINE Bytes Magnitudes(Bytes v) { return _mm256_abs_epi8(v); }
HWY_INLINE Bytes WithSignsOf(Bytes v, Bytes signs) {
  return _mm256_sign_epi8(v, signs);
}

#else  // the plain reference

inline constexpr size_t kPartRows = 16;
inline constexpr size_t kTokenBlock = 2;
struct Bytes {
  uint8_t b[kPartRows * kPanelQuad];
};
struct Ints {
  int32_t i[kPartRows];
};
struct Floats {
  float f[kPartRows];
};

HWY_INLINE Bytes LoadBytes(const std::byte* p) {
  Bytes v;
  std::memcpy(v.b, p, sizeof(v.b));
  return v;
}
HWY_INLINE void StoreBytes(const Bytes& v, std::byte* p) {
  std::memcpy(p, v.b, sizeof(v.b));
}
// Bits that leave their byte are masked away by every caller.
template <int kBits>
HWY_INLINE Bytes ShiftRight(Bytes v) {
  for (uint8_t& b : v.b) b = static_cast<uint8_t>(b >> kBits);
  return v;
}
template <int kBits>
HWY_INLINE Bytes ShiftLeft(Bytes v) {
  for (uint8_t& b : v.b) b = static_cast<uint8_t>(b << kBits);
  return v;
}
HWY_INLINE Bytes Mask(Bytes v, uint8_t mask) {
  for (uint8_t& b : v.b) b &= mask;
  return v;
}
HWY_INLINE Bytes OrMasked(Bytes base, const Bytes& v, uint8_t mask) {
  for (size_t i = 0; i < sizeof(v.b); ++i) {
    base.b[i] = static_cast<uint8_t>(base.b[i] | (v.b[i] & mask));
  }
  return base;
}
HWY_INLINE Bytes FlipSigns(Bytes v) {
  for (uint8_t& b : v.b) b ^= 0x80;
  return v;
}
HWY_INLINE Bytes LookUp(const int8_t* table, Bytes index) {
  for (uint8_t& b : index.b) b = static_cast<uint8_t>(table[b]);
  return index;
}
HWY_INLINE Bytes BroadcastQuad(const int8_t* p) {
  Bytes v;
  for (size_t i = 0; i < sizeof(v.b); i += kPanelQuad) {
    std::memcpy(v.b + i, p, kPanelQuad);
  }
  return v;
}
template <class V, class T, class Fn>
HWY_INLINE V EachRow(const Fn& fn) {
  V v;
  for (size_t r = 0; r < kPartRows; ++r) reinterpret_cast<T*>(&v)[r] = fn(r);
  return v;
}
template <class Fn>
HWY_INLINE Ints EachInt(const Fn& fn) {
  return EachRow<Ints, int32_t>(fn);
}
template <class Fn>
HWY_INLINE Floats EachFloat(const Fn& fn) {
  return EachRow<Floats, float>(fn);
}
HWY_INLINE Ints BroadcastInt(const int32_t* p) {
  return EachInt([&](size_t) { return *p; });
}
HWY_INLINE Floats BroadcastFloat(const float* p) {
  return EachFloat([&](size_t) { return *p; });
}
template <int kBits>
HWY_INLINE Ints ShiftLeftInts(const Ints& v) {
  return EachInt([&](size_t r) { return v.i[r] * (1 << kBits); });
}
HWY_INLINE Ints ZeroInts() {
  return EachInt([](size_t) { return 0; });
}
HWY_INLINE Ints AddInts(const Ints& a, const Ints& b) {
  return EachInt([&](size_t r) { return a.i[r] + b.i[r]; });
}
HWY_INLINE Floats ToFloats(const Ints& v) {
  return EachFloat([&](size_t r) { return static_cast<float>(v.i[r]); });
}
HWY_INLINE Floats ZeroFloats() {
  return EachFloat([](size_t) { return 0.0f; });
}
HWY_INLINE Floats Multiply(const Floats& a, const Floats& b) {
  return EachFloat([&](size_t r) { return a.f[r] * b.f[r]; });
}
HWY_INLINE Floats MulAdd(const Floats& a, const Floats& b, const Floats& c) {
  return EachFloat([&](size_t r) { return std::fma(a.f[r], b.f[r], c.f[r]); });
}
HWY_INLINE Floats NegMulAdd(const Floats& a, const Floats& b, const Floats& c) {
  return EachFloat([&](size_t r) { return std::fma(-a.f[r], b.f[r], c.f[r]); });
}
HWY_INLINE Floats LoadFloats(const float* p) {
  return EachFloat([&](size_t r) { return p[r]; });
}
HWY_INLINE void StoreFloats(const Floats& v, float* p) {
  std::memcpy(p, v.f, sizeof(v.f));
}
HWY_INLINE uint16_t Word(const std::byte* p, size_t r) {
  uint16_t word;
  std::memcpy(&word, p + r * 2, 2);
  return word;
}
HWY_INLINE Floats LoadHalves(const std::byte* p) {
  return EachFloat([&](size_t r) { return F16ToF32(Word(p, r)); });
}
HWY_INLINE Floats LoadBFloats(const std::byte* p) {
  return EachFloat([&](size_t r) { return BF16ToF32(Word(p, r)); });
}
HWY_INLINE Floats LoadUnsigned(const std::byte* p) {
  return EachFloat(
      [&](size_t r) { return static_cast<float>(static_cast<uint8_t>(p[r])); });
}
HWY_INLINE Floats LoadSigned(const std::byte* p) {
  return EachFloat(
      [&](size_t r) { return static_cast<float>(static_cast<int8_t>(p[r])); });
}
HWY_INLINE Floats LoadLowNibbles(const std::byte* p) {
  return EachFloat([&](size_t r) {
    return static_cast<float>(static_cast<uint8_t>(p[r]) & 15);
  });
}
HWY_INLINE Floats LoadHighNibbles(const std::byte* p) {
  return EachFloat([&](size_t r) {
    return static_cast<float>(static_cast<uint8_t>(p[r]) >> 4);
  });
}
HWY_INLINE Ints DotAdd(const Ints& sum, const Bytes& a, const Bytes& b) {
  return EachInt([&](size_t r) {
    int dot = sum.i[r];
    for (size_t i = r * kPanelQuad; i < (r + 1) * kPanelQuad; ++i) {
      dot += a.b[i] * static_cast<int8_t>(b.b[i]);
    }
    return dot;
  });
}

#endif

inline constexpr size_t kNumParts = kPanelRows / kPartRows;
// Where a part's rows begin in a vector of the panel's 16 rows of `bytes` each.
HWY_INLINE constexpr size_t PartAt(size_t part, size_t bytes) {
  return part * kPartRows * bytes;
}

// True where the instruction set multiplies unsigned bytes of all 8 bits by
// signed ones without saturating. Else codes of 8 bits are kept signed.
inline constexpr bool kHasWideDot =
    HWY_TARGET == HWY_AVX3_DL || HWY_TARGET > HWY_AVX2;

// An exact sum over quads 0 to kNumQuads - 1: start, add each in turn, finish.
// kBits: width of the codes; those of 8 are signed without kHasWideDot.
template <int kBits, size_t kNumQuads>
struct QuadSum {
#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET > HWY_AVX2
  Ints sum;
  HWY_INLINE void Start(const Ints& first) { sum = first; }
  template <size_t kQuad>
  HWY_INLINE void Add(const Bytes& w, const Bytes& x) {
    sum = DotAdd(sum, w, x);
  }
  HWY_INLINE Ints Finish() const { return sum; }
#else
  // Pairs of products are added in 16 bits for as long as they cannot overflow:
  // 127 * 2 * (2^bits - 1) a quad stays below 2^15 for so many quads.
  static constexpr size_t kFit = kBits <= 4   ? 8
                                 : kBits == 5 ? 4
                                 : kBits == 6 ? 2
                                              : 1;
  static constexpr size_t kQuadsIn16Bits = kFit < kNumQuads ? kFit : kNumQuads;
  Ints sum, pairs;
  HWY_INLINE void Start(const Ints& first) { sum = first; }
  template <size_t kQuad>
  HWY_INLINE void Add(const Bytes& w, const Bytes& x) {
    constexpr size_t kAt = kQuad % kQuadsIn16Bits;
    Ints products;
    if constexpr (kBits == 8) {  // signed: |w| . (x with w's sign)
      products = PairSums(Magnitudes(w), WithSignsOf(x, w));
    } else {
      products = PairSums(w, x);
    }
    pairs = kAt == 0 ? products : AddPairs(pairs, products);
    if constexpr (kAt + 1 == kQuadsIn16Bits) {
      sum = AddInts(sum, SumOfPairs(pairs));
    }
  }
  HWY_INLINE Ints Finish() const { return sum; }
#endif
};

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle

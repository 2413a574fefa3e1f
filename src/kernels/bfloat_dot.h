// Dot products of a BF16 panel's 16 rows with BF16 activations. For each row
// two sums, one over the even pairs of columns and one over the odd pairs, in
// order; a pair is added as
//   sum = fma(w[2p + 1], x[2p + 1], sum); sum = fma(w[2p], x[2p], sum)
// the odd column first, and in the end the two sums are added. Numbers below
// 2^-126 are zeros, on their way in and as results. That is what vdpbf16ps
// does by itself, and what fused multiply-adds do while FlushDenormals lives
// (a product of two BF16 is exact in a float), so that both give the same bits.
#if defined(MUSTER_KERNELS_BFLOAT_DOT_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MUSTER_KERNELS_BFLOAT_DOT_H_
#undef MUSTER_KERNELS_BFLOAT_DOT_H_
#else
#define MUSTER_KERNELS_BFLOAT_DOT_H_
#endif

#include <xmmintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/panel_dot.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// Float instructions of this thread take denormals for zeros while it lives.
// The compiler does not know: what must see it belongs into a function that is
// not inlined beside it.
class FlushDenormals {
 public:
  FlushDenormals() : saved_(_mm_getcsr()) {
    constexpr unsigned kInputsAreZero = 0x0040, kResultsAreZero = 0x8000;
    _mm_setcsr(saved_ | kInputsAreZero | kResultsAreZero);
  }
  ~FlushDenormals() { _mm_setcsr(saved_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned saved_;
};

HWY_INLINE Bytes BroadcastPair(const uint16_t* p) {
  return BroadcastQuad(reinterpret_cast<const int8_t*>(p));
}

// Pairs of BF16 as floats.
struct FloatPairs {
  Floats even, odd;
};
#if HWY_TARGET == HWY_AVX3_DL || HWY_TARGET == HWY_AVX3
HWY_INLINE FloatPairs SplitPairs(Bytes v) {
  // With a mask of all rows, or GCC 12 warns of what its header leaves unset.
  return {
      _mm512_castsi512_ps(_mm512_maskz_slli_epi32(0xFFFF, v, 16)),
      _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(-0x10000)))};
}
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE FloatPairs SplitPairs(Bytes v) {
  return {
      _mm256_castsi256_ps(_mm256_slli_epi32(v, 16)),
      _mm256_castsi256_ps(_mm256_and_si256(v, _mm256_set1_epi32(-0x10000)))};
}
#else
HWY_INLINE FloatPairs SplitPairs(const Bytes& v) {
  const auto* bytes = reinterpret_cast<const std::byte*>(v.b);
  return {
      EachFloat([&](size_t r) { return BF16ToF32(Word(bytes, 2 * r)); }),
      EachFloat([&](size_t r) { return BF16ToF32(Word(bytes, 2 * r + 1)); })};
}
#endif

// How pairs are multiplied: by fused multiply-adds of floats, ...
struct FusedProducts {
  using Pairs = FloatPairs;
  static HWY_INLINE Pairs Prepare(const Bytes& v) { return SplitPairs(v); }
  static HWY_INLINE Floats Add(const Pairs& w, const Pairs& x,
                               const Floats& sum) {
    return MulAdd(w.even, x.even, MulAdd(w.odd, x.odd, sum));
  }
};
#if HWY_TARGET == HWY_AVX3_DL
// ... or by the instruction for it, where UsesBFloatProducts(). Assembly,
// because Highway 1.0.3 does not switch AVX-512 BF16 on for its target.
struct PairProducts {
  using Pairs = Bytes;
  static HWY_INLINE Pairs Prepare(Bytes v) { return v; }
  static HWY_INLINE Floats Add(Pairs w, Pairs x, Floats sum) {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(w), "v"(x));
    return sum;
  }
};
#endif

// Of one row and one token, for all 16 rows of a panel.
struct BFloatSums {
  alignas(64) float even_pairs[kPanelRows];
  alignas(64) float odd_pairs[kPanelRows];
};

// Parts of a panel that one pass over it takes: all that registers have room
// for, so that a single token does not wait for two sums alone.
template <size_t kTokens>
inline constexpr size_t kPartsAtOnce =
    kTokens* kNumParts <= kTokenBlock ? kNumParts : 1;

// sums[t] += the panel's next `num_pairs` pairs . those of x[t], for
// kPartsAtOnce parts from `part` on.   REQUIRES: num_pairs is even.
template <class Products, size_t kTokens>
MUSTER_KERNELS_OPAQUE void AddPairs(const std::byte* panel, size_t num_pairs,
                                    size_t part, const uint16_t* const* x,
                                    BFloatSums* sums) {
  constexpr size_t kNum = kPartsAtOnce<kTokens>;
  const auto row = [part](size_t i) { return (part + i) * kPartRows; };
  Floats even[kTokens][kNum], odd[kTokens][kNum];
  const uint16_t* rows[kTokens];
  Unroll<kTokens>([&](auto t) {
    rows[t] = x[t];
    Unroll<kNum>([&](auto i) {
      even[t][i] = LoadFloats(sums[t].even_pairs + row(i));
      odd[t][i] = LoadFloats(sums[t].odd_pairs + row(i));
    });
  });
  // One pair of columns.
  const auto add = [&](const std::byte* pair, size_t c,
                       Floats(&to)[kTokens][kNum]) HWY_ATTR {
    typename Products::Pairs w[kNum];
    Unroll<kNum>([&](auto i) {
      w[i] = Products::Prepare(LoadBytes(pair + PartAt(part + i, 4)));
    });
    Unroll<kTokens>([&](auto t) {
      const auto v = Products::Prepare(BroadcastPair(rows[t] + c));
      Unroll<kNum>(
          [&](auto i) { to[t][i] = Products::Add(w[i], v, to[t][i]); });
    });
  };
  for (size_t c = 0; c < 2 * num_pairs; c += 4) {
    if (part == 0) Prefetch(panel + kReadAheadBytes, 2 * kBFloatPairBytes);
    add(panel, c, even);
    add(panel + kBFloatPairBytes, c + 2, odd);
    panel += 2 * kBFloatPairBytes;
  }
  Unroll<kTokens>([&](auto t) {
    Unroll<kNum>([&](auto i) {
      StoreFloats(even[t][i], sums[t].even_pairs + row(i));
      StoreFloats(odd[t][i], sums[t].odd_pairs + row(i));
    });
  });
}

// out[r] = the two sums of row r, added.
MUSTER_KERNELS_OPAQUE void FinishSums(const BFloatSums& sums, size_t num_rows,
                                      float* out) {
  for (size_t r = 0; r < num_rows; ++r) {
    out[r] = sums.even_pairs[r] + sums.odd_pairs[r];
  }
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle

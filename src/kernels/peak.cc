#include "kernels/peak.h"

#include "base/check.h"
#include "kernels/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/peak.cc"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Independent sums: more than an instruction's latency times how many start in
// a cycle, and few enough for AVX2's 16 registers.
constexpr size_t kSums = 10;

using WordTag = hn::CappedTag<uint64_t, 8>;
using WordVec = hn::Vec<WordTag>;

uint64_t Read(const std::byte* data, size_t size_bytes) {
  constexpr size_t kAhead = 2048;  // bytes; a prefetch past the end is harmless
  constexpr size_t kChains = 4;
  const WordTag d;
  constexpr size_t kVecBytes = hn::MaxLanes(d) * sizeof(uint64_t);
  WordVec sums[kChains];
  for (WordVec& sum : sums) sum = hn::Zero(d);
  for (size_t at = 0; at < size_bytes; at += kReadGrain) {
    for (size_t i = 0; i < kReadGrain; i += 64) {
      hwy::Prefetch(data + at + i + kAhead);
    }
    for (size_t i = 0; i < kReadGrain; i += kChains * kVecBytes) {
      for (size_t c = 0; c < kChains; ++c) {
        const auto* words =
            reinterpret_cast<const uint64_t*>(data + at + i + c * kVecBytes);
        sums[c] = hn::Xor(sums[c], hn::LoadU(d, words));
      }
    }
  }
  const WordVec all =
      hn::Xor(hn::Xor(sums[0], sums[1]), hn::Xor(sums[2], sums[3]));
  uint64_t words[hn::MaxLanes(WordTag())];
  hn::StoreU(all, d, words);
  uint64_t result = 0;
  for (const uint64_t word : words) result ^= word;
  return result;
}

// sum[l] += a[4l..4l+3] . b[4l..4l+3]. Assembly, because a compiler would move
// what does not change out of the loop.
#if HWY_TARGET == HWY_AVX3_DL
using ByteVec = __m512i;
HWY_INLINE void AddProducts(ByteVec a, ByteVec b, ByteVec& sum) {
  asm volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
}
#elif HWY_TARGET == HWY_AVX3
using ByteVec = __m512i;
HWY_INLINE void AddProducts(ByteVec a, ByteVec b, ByteVec& sum) {
  ByteVec pairs;
  asm volatile(
      "vpmaddubsw %3, %2, %1\n\t"
      "vpmaddwd %3, %1, %1\n\t"
      "vpaddd %1, %0, %0"
      : "+v"(sum), "=&v"(pairs)
      : "v"(a), "v"(b));
}
#elif HWY_TARGET == HWY_AVX2
using ByteVec = __m256i;
HWY_INLINE void AddProducts(ByteVec a, ByteVec b, ByteVec& sum) {
  ByteVec pairs;
  asm volatile(
      "vpmaddubsw %3, %2, %1\n\t"
      "vpmaddwd %3, %1, %1\n\t"
      "vpaddd %1, %0, %0"
      : "+x"(sum), "=&x"(pairs)
      : "x"(a), "x"(b));
}
#else  // the plain reference
struct ByteVec {
  int32_t lane[4];
};
HWY_INLINE void AddProducts(const ByteVec& a, const ByteVec& b, ByteVec& sum) {
  for (size_t l = 0; l < 4; ++l) {
    for (int shift = 0; shift < 32; shift += 8) {
      sum.lane[l] += static_cast<uint8_t>(a.lane[l] >> shift) *
                     static_cast<int8_t>(b.lane[l] >> shift);
    }
    asm volatile("" : "+m"(sum.lane[l]));
  }
}
#endif

// Applies fn to each of the sums; spelled without a loop, so that they stay in
// registers.
template <class Vec, class Fn>
HWY_INLINE void EachSum(Vec (&sums)[kSums], const Fn& fn) {
  static_assert(kSums == 10);
  fn(sums[0]), fn(sums[1]), fn(sums[2]), fn(sums[3]), fn(sums[4]);
  fn(sums[5]), fn(sums[6]), fn(sums[7]), fn(sums[8]), fn(sums[9]);
}

uint64_t SpinBytes(uint64_t rounds) {
  ByteVec sums[kSums] = {};
  const ByteVec a = {}, b = {};
  for (uint64_t round = 0; round < rounds; ++round) {
    EachSum(sums, [&](ByteVec& sum) { AddProducts(a, b, sum); });
  }
  return rounds * kSums * sizeof(ByteVec) * 2;
}

uint64_t SpinFloats(uint64_t rounds) {
  const hn::CappedTag<float, 16> d;
  using Vec = hn::Vec<decltype(d)>;
  Vec sums[kSums];
  for (Vec& sum : sums) sum = hn::Zero(d);
  const Vec factor = hn::Set(d, 0.5f), term = hn::Set(d, 1.0f);
  for (uint64_t round = 0; round < rounds; ++round) {
    EachSum(sums, [&](Vec& sum) { sum = hn::MulAdd(sum, factor, term); });
  }
  Vec all = hn::Zero(d);
  EachSum(sums, [&](Vec& sum) { all = hn::Add(all, sum); });
  const volatile float used = hn::GetLane(all);
  static_cast<void>(used);
  return rounds * kSums * hn::MaxLanes(d) * 2;
}

uint64_t SpinBFloats(uint64_t rounds) {
#if HWY_TARGET == HWY_AVX3_DL
  if (UsesBFloatProducts()) {
    __m512 sums[kSums] = {};
    const __m512i a = {}, b = {};
    for (uint64_t round = 0; round < rounds; ++round) {
      EachSum(sums, [&](__m512& sum) {
        asm volatile("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
      });
    }
    return rounds * kSums * sizeof(__m512) / sizeof(uint16_t) * 2;
  }
#endif
  return SpinFloats(rounds);
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(Read);
HWY_EXPORT(SpinBytes);
HWY_EXPORT(SpinBFloats);
HWY_EXPORT(SpinFloats);

uint64_t ReadAll(const std::byte* data, size_t size_bytes) {
  CHECK_EQ(size_bytes % kReadGrain, 0u);
  return HWY_DYNAMIC_DISPATCH(Read)(data, size_bytes);
}

uint64_t SpinByteProducts(uint64_t rounds) {
  return HWY_DYNAMIC_DISPATCH(SpinBytes)(rounds);
}

uint64_t SpinBFloatProducts(uint64_t rounds) {
  return HWY_DYNAMIC_DISPATCH(SpinBFloats)(rounds);
}

uint64_t SpinFloatProducts(uint64_t rounds) {
  return HWY_DYNAMIC_DISPATCH(SpinFloats)(rounds);
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

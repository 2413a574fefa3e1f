// The integers of any quantised block, one byte each, and its scales as stored:
// what packing into panels reads.
//
// Plain loops: this header is compiled once per instruction set, and the
// compiler vectorises them for it.
#if defined(MUSTER_KERNELS_BLOCK_CODES_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MUSTER_KERNELS_BLOCK_CODES_H_
#undef MUSTER_KERNELS_BLOCK_CODES_H_
#else
#define MUSTER_KERNELS_BLOCK_CODES_H_
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hwy/highway.h"
#include "tensor/blocks.h"
#include "tensor/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// Element i of 2 * kNum from low nibbles, element i + kNum from high ones.
template <size_t kNum>
HWY_INLINE void SplitNibbles(const uint8_t* HWY_RESTRICT qs,
                             uint8_t* HWY_RESTRICT codes) {
  for (size_t i = 0; i < kNum; ++i) {
    codes[i] = qs[i] & 15;
    codes[i + kNum] = static_cast<uint8_t>(qs[i] >> 4);
  }
}

// Bit i of `high` becomes bit 4 of code i.
HWY_INLINE void AddFifthBits(const uint8_t qh[4], uint8_t* HWY_RESTRICT codes) {
  for (size_t i = 0; i < 32; ++i) {
    codes[i] = static_cast<uint8_t>(codes[i] | (qh[i / 8] >> (i % 8) & 1) << 4);
  }
}

// What a block holds besides its codes. Arrays run over its scale groups.
struct BlockScales {
  uint16_t scale;     // float16, or bfloat16 for MXFP4
  uint16_t min;       // float16; its weight is subtracted
  uint8_t codes[16];  // integer scales, offsets taken away (signed as stored)
  uint8_t mins[16];
};

HWY_INLINE void Codes(const BlockQ4_0& b, uint8_t* codes) {
  SplitNibbles<16>(b.qs, codes);
}
HWY_INLINE void Codes(const BlockQ4_1& b, uint8_t* codes) {
  SplitNibbles<16>(b.qs, codes);
}
HWY_INLINE void Codes(const BlockIQ4_NL& b, uint8_t* codes) {
  SplitNibbles<16>(b.qs, codes);
}
HWY_INLINE void Codes(const BlockMXFP4& b, uint8_t* codes) {
  SplitNibbles<16>(b.qs, codes);
}
HWY_INLINE void Codes(const BlockQ5_0& b, uint8_t* codes) {
  SplitNibbles<16>(b.qs, codes);
  AddFifthBits(b.qh, codes);
}
HWY_INLINE void Codes(const BlockQ5_1& b, uint8_t* codes) {
  SplitNibbles<16>(b.qs, codes);
  AddFifthBits(b.qh, codes);
}
HWY_INLINE void Codes(const BlockQ8_0& b, uint8_t* codes) {
  for (size_t i = 0; i < 32; ++i)
    codes[i] = static_cast<uint8_t>(b.qs[i] ^ 128);
}
HWY_INLINE void Codes(const BlockIQ4_XS& b, uint8_t* codes) {
  for (size_t g = 0; g < 8; ++g) {
    SplitNibbles<16>(b.qs + g * 16, codes + g * 32);
  }
}
HWY_INLINE void Codes(const BlockQ2_K& b, uint8_t* codes) {
  for (size_t part = 0; part < 8; ++part) {
    const uint8_t* HWY_RESTRICT qs = b.qs + part / 4 * 32;
    const int shift = static_cast<int>(part % 4) * 2;
    for (size_t i = 0; i < 32; ++i) {
      codes[part * 32 + i] = static_cast<uint8_t>(qs[i] >> shift & 3);
    }
  }
}
HWY_INLINE void Codes(const BlockQ3_K& b, uint8_t* codes) {
  for (size_t part = 0; part < 8; ++part) {
    const uint8_t* HWY_RESTRICT qs = b.qs + part / 4 * 32;
    const int shift = static_cast<int>(part % 4) * 2;
    for (size_t i = 0; i < 32; ++i) {
      const int low = qs[i] >> shift & 3;
      const int high = b.hmask[i] >> part & 1;
      codes[part * 32 + i] = static_cast<uint8_t>(low | high << 2);
    }
  }
}
HWY_INLINE void Codes(const BlockQ4_K& b, uint8_t* codes) {
  for (size_t pair = 0; pair < 4; ++pair) {
    SplitNibbles<32>(b.qs + pair * 32, codes + pair * 64);
  }
}
HWY_INLINE void Codes(const BlockQ5_K& b, uint8_t* codes) {
  for (size_t pair = 0; pair < 4; ++pair) {
    uint8_t* HWY_RESTRICT out = codes + pair * 64;
    SplitNibbles<32>(b.qs + pair * 32, out);
    for (size_t i = 0; i < 32; ++i) {
      const int high = b.qh[i] >> (2 * pair);
      out[i] = static_cast<uint8_t>(out[i] | (high & 1) << 4);
      out[i + 32] = static_cast<uint8_t>(out[i + 32] | (high >> 1 & 1) << 4);
    }
  }
}
HWY_INLINE void Codes(const BlockQ6_K& b, uint8_t* codes) {
  for (size_t half = 0; half < 2; ++half) {
    const uint8_t* HWY_RESTRICT ql = b.ql + half * 64;
    const uint8_t* HWY_RESTRICT qh = b.qh + half * 32;
    uint8_t* HWY_RESTRICT out = codes + half * 128;
    for (size_t i = 0; i < 32; ++i) {
      const int q = qh[i];
      out[i] = static_cast<uint8_t>((ql[i] & 15) | (q & 3) << 4);
      out[i + 32] = static_cast<uint8_t>((ql[i + 32] & 15) | (q >> 2 & 3) << 4);
      out[i + 64] = static_cast<uint8_t>(ql[i] >> 4 | (q >> 4 & 3) << 4);
      out[i + 96] = static_cast<uint8_t>(ql[i + 32] >> 4 | (q >> 6) << 4);
    }
  }
}

// Types with one scale, and perhaps one min, a block.
template <class Block>
HWY_INLINE void Scales(const Block& b, BlockScales& out) {
  out.scale = b.d;
}
HWY_INLINE void NegateMin(uint16_t m, BlockScales& out) {
  out.min = static_cast<uint16_t>(m ^ 0x8000u);
}
HWY_INLINE void Scales(const BlockQ4_1& b, BlockScales& out) {
  out.scale = b.d;
  NegateMin(b.m, out);
}
HWY_INLINE void Scales(const BlockQ5_1& b, BlockScales& out) {
  out.scale = b.d;
  NegateMin(b.m, out);
}
// Half of 2^(e - 127), which may be subnormal: its upper 16 bits are all of it.
HWY_INLINE void Scales(const BlockMXFP4& b, BlockScales& out) {
  const uint32_t bits =
      b.e < 2 ? 0x00200000u << b.e : static_cast<uint32_t>(b.e - 1) << 23;
  out.scale = static_cast<uint16_t>(bits >> 16);
}
HWY_INLINE void Scales(const BlockQ2_K& b, BlockScales& out) {
  out.scale = b.d;
  out.min = b.dmin;
  std::memcpy(out.codes, b.scales, 16);  // both nibbles
}
HWY_INLINE void Scales(const BlockQ3_K& b, BlockScales& out) {
  out.scale = b.d;
  for (int g = 0; g < 16; ++g) {
    out.codes[g] = static_cast<uint8_t>(Q3Scale(b.scales, g));
  }
}
template <class Block>
HWY_INLINE void ScalesAndMins(const Block& b, BlockScales& out) {
  out.scale = b.d;
  out.min = b.dmin;
  for (int g = 0; g < 8; ++g) {
    const ScaleMin sm = ScaleMinOf(b.scales, g);
    out.codes[g] = sm.scale;
    out.mins[g] = sm.min;
  }
}
HWY_INLINE void Scales(const BlockQ4_K& b, BlockScales& out) {
  ScalesAndMins(b, out);
}
HWY_INLINE void Scales(const BlockQ5_K& b, BlockScales& out) {
  ScalesAndMins(b, out);
}
HWY_INLINE void Scales(const BlockQ6_K& b, BlockScales& out) {
  out.scale = b.d;
  std::memcpy(out.codes, b.scales, 16);
}
HWY_INLINE void Scales(const BlockIQ4_XS& b, BlockScales& out) {
  out.scale = b.d;
  for (int g = 0; g < 8; ++g) {
    out.codes[g] = static_cast<uint8_t>(Iq4XsScale(b, g));
  }
}

// The block of a type.
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

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle

// The blocks that quantised tensors consist of, byte for byte as files have
// them. Source: ggml's block layouts. The code books stand in panels.h.
#pragma once

#include <cstdint>

#include "tensor/panels.h"

namespace muster {

#pragma pack(push, 1)

struct BlockQ4_0 {  // 32 elements: low nibbles first; (n - 8) * d
  uint16_t d;       // float16, as in all that follow
  uint8_t qs[16];
};
struct BlockQ4_1 {  // n * d + m
  uint16_t d, m;
  uint8_t qs[16];
};
struct BlockQ5_0 {  // (n - 16) * d; bit i of qh is bit 4 of element i
  uint16_t d;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ5_1 {  // n * d + m
  uint16_t d, m;
  uint8_t qh[4];
  uint8_t qs[16];
};
struct BlockQ8_0 {  // q * d
  uint16_t d;
  int8_t qs[32];
};
struct BlockIQ4_NL {  // kIq4Values[n] * d
  uint16_t d;
  uint8_t qs[16];
};
struct BlockMXFP4 {  // kMxfp4Values[n] * 2^(e - 128)
  uint8_t e;
  uint8_t qs[16];
};

// Super-blocks of 256 elements.
struct BlockQ2_K {  // 16 groups of 16: d * (scale & 15) * q - dmin * (scale >>
                    // 4)
  uint8_t scales[16];
  uint8_t qs[64];
  uint16_t d, dmin;
};
struct BlockQ3_K {  // 16 groups of 16: d * (scale - 32) * (q - 4)
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  uint16_t d;
};
struct BlockQ4_K {  // 8 groups of 32: d * scale * q - dmin * min
  uint16_t d, dmin;
  uint8_t scales[12];
  uint8_t qs[128];
};
struct BlockQ5_K {
  uint16_t d, dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};
struct BlockQ6_K {  // 16 groups of 16: d * scale * (q - 32)
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint16_t d;
};
struct BlockIQ4_XS {  // 8 groups of 32: d * (scale - 32) * kIq4Values[n]
  uint16_t d;
  uint16_t scales_h;
  uint8_t scales_l[4];
  uint8_t qs[128];
};

#pragma pack(pop)

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockIQ4_NL) == 18);
static_assert(sizeof(BlockMXFP4) == 17 && sizeof(BlockQ2_K) == 84);
static_assert(sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210);
static_assert(sizeof(BlockIQ4_XS) == 136);

// Scale and min of group g (0..7) of Q4_K and Q5_K, 6 bits each.
struct ScaleMin {
  uint8_t scale, min;
};
inline ScaleMin ScaleMinOf(const uint8_t scales[12], int g) {
  if (g < 4) {
    return {static_cast<uint8_t>(scales[g] & 63),
            static_cast<uint8_t>(scales[g + 4] & 63)};
  }
  return {
      static_cast<uint8_t>((scales[g + 4] & 15) | (scales[g - 4] >> 6 << 4)),
      static_cast<uint8_t>((scales[g + 4] >> 4) | (scales[g] >> 6 << 4))};
}

// Scale of group g (0..15) of Q3_K, in [-32, 31].
inline int Q3Scale(const uint8_t scales[12], int g) {
  const int low = g < 8 ? scales[g] & 15 : scales[g - 8] >> 4;
  const int high = (scales[8 + g % 4] >> (2 * (g / 4))) & 3;
  return (low | (high << 4)) - 32;
}

// Scale of group g (0..7) of IQ4_XS, in [-32, 31].
inline int Iq4XsScale(const BlockIQ4_XS& b, int g) {
  const int low = (b.scales_l[g / 2] >> (4 * (g % 2))) & 15;
  const int high = (b.scales_h >> (2 * g)) & 3;
  return (low | (high << 4)) - 32;
}

}  // namespace muster

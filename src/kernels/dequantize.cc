#include "kernels/dequantize.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "kernels/pack_panels.h"
#include "tensor/blocks.h"
#include "tensor/float16.h"

namespace muster::kernels {
namespace {

// Each overload writes the elements of one block. The order of operations is
// the reference's: (d * scale) is rounded before it meets the element.

void Decode(const BlockQ4_0& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((b.qs[i] & 15) - 8);
    out[i + 16] = d * static_cast<float>((b.qs[i] >> 4) - 8);
  }
}

void Decode(const BlockQ4_1& b, float* out) {
  const float d = F16ToF32(b.d), m = F16ToF32(b.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(b.qs[i] & 15) + m;
    out[i + 16] = d * static_cast<float>(b.qs[i] >> 4) + m;
  }
}

uint32_t HighBits(const uint8_t qh[4]) {
  uint32_t bits;
  std::memcpy(&bits, qh, 4);
  return bits;
}

void Decode(const BlockQ5_0& b, float* out) {
  const float d = F16ToF32(b.d);
  const uint32_t high = HighBits(b.qh);
  for (int i = 0; i < 32; ++i) {
    const int low = i < 16 ? b.qs[i] & 15 : b.qs[i - 16] >> 4;
    const int q = low | static_cast<int>((high >> i & 1) << 4);
    out[i] = d * static_cast<float>(q - 16);
  }
}

void Decode(const BlockQ5_1& b, float* out) {
  const float d = F16ToF32(b.d), m = F16ToF32(b.m);
  const uint32_t high = HighBits(b.qh);
  for (int i = 0; i < 32; ++i) {
    const int low = i < 16 ? b.qs[i] & 15 : b.qs[i - 16] >> 4;
    const int q = low | static_cast<int>((high >> i & 1) << 4);
    out[i] = d * static_cast<float>(q) + m;
  }
}

void Decode(const BlockQ8_0& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(b.qs[i]);
}

void Decode(const BlockIQ4_NL& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(kIq4Values[b.qs[i] & 15]);
    out[i + 16] = d * static_cast<float>(kIq4Values[b.qs[i] >> 4]);
  }
}

// 2^(e - 128): half of the E8M0 scale, subnormal at the low end.
float HalfE8M0(uint8_t e) {
  const uint32_t bits =
      e < 2 ? 0x00200000u << e : static_cast<uint32_t>(e - 1) << 23;
  return std::bit_cast<float>(bits);
}

void Decode(const BlockMXFP4& b, float* out) {
  const float d = HalfE8M0(b.e);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(kMxfp4Values[b.qs[i] & 15]);
    out[i + 16] = d * static_cast<float>(kMxfp4Values[b.qs[i] >> 4]);
  }
}

void Decode(const BlockQ2_K& b, float* out) {
  const float d = F16ToF32(b.d), dmin = F16ToF32(b.dmin);
  for (int g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(b.scales[g] & 15);
    const float min = dmin * static_cast<float>(b.scales[g] >> 4);
    const uint8_t* qs = b.qs + g / 8 * 32 + g % 2 * 16;
    const int shift = g % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) {
      out[g * 16 + i] = scale * static_cast<float>(qs[i] >> shift & 3) - min;
    }
  }
}

void Decode(const BlockQ3_K& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(Q3Scale(b.scales, g));
    const uint8_t* qs = b.qs + g / 8 * 32 + g % 2 * 16;
    const uint8_t* hmask = b.hmask + g % 2 * 16;
    const int shift = g % 8 / 2 * 2;
    for (int i = 0; i < 16; ++i) {
      const int low = qs[i] >> shift & 3;
      const int high = hmask[i] >> (g / 2) & 1;
      out[g * 16 + i] = scale * static_cast<float>(low + 4 * high - 4);
    }
  }
}

void Decode(const BlockQ4_K& b, float* out) {
  const float d = F16ToF32(b.d), dmin = F16ToF32(b.dmin);
  for (int g = 0; g < 8; ++g) {
    const ScaleMin sm = ScaleMinOf(b.scales, g);
    const float scale = d * static_cast<float>(sm.scale);
    const float min = dmin * static_cast<float>(sm.min);
    const uint8_t* qs = b.qs + g / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int q = g % 2 ? qs[i] >> 4 : qs[i] & 15;
      out[g * 32 + i] = scale * static_cast<float>(q) - min;
    }
  }
}

void Decode(const BlockQ5_K& b, float* out) {
  const float d = F16ToF32(b.d), dmin = F16ToF32(b.dmin);
  for (int g = 0; g < 8; ++g) {
    const ScaleMin sm = ScaleMinOf(b.scales, g);
    const float scale = d * static_cast<float>(sm.scale);
    const float min = dmin * static_cast<float>(sm.min);
    const uint8_t* qs = b.qs + g / 2 * 32;
    for (int i = 0; i < 32; ++i) {
      const int low = g % 2 ? qs[i] >> 4 : qs[i] & 15;
      const int q = low | ((b.qh[i] >> g & 1) << 4);
      out[g * 32 + i] = scale * static_cast<float>(q) - min;
    }
  }
}

void Decode(const BlockQ6_K& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int g = 0; g < 16; ++g) {
    const float scale = d * static_cast<float>(b.scales[g]);
    const int half = g / 8, part = g % 8 / 2, from = g % 2 * 16;
    const uint8_t* ql = b.ql + half * 64 + part % 2 * 32 + from;
    const uint8_t* qh = b.qh + half * 32 + from;
    for (int i = 0; i < 16; ++i) {
      const int low = part < 2 ? ql[i] & 15 : ql[i] >> 4;
      const int high = qh[i] >> (2 * part) & 3;
      out[g * 16 + i] = scale * static_cast<float>((low | high << 4) - 32);
    }
  }
}

void Decode(const BlockIQ4_XS& b, float* out) {
  const float d = F16ToF32(b.d);
  for (int g = 0; g < 8; ++g) {
    const float scale = d * static_cast<float>(Iq4XsScale(b, g));
    const uint8_t* qs = b.qs + g * 16;
    for (int i = 0; i < 16; ++i) {
      out[g * 32 + i] = scale * static_cast<float>(kIq4Values[qs[i] & 15]);
      out[g * 32 + 16 + i] = scale * static_cast<float>(kIq4Values[qs[i] >> 4]);
    }
  }
}

template <class Block, size_t kElements>
void DecodeAll(const std::byte* blocks, size_t num_elements, float* out) {
  for (size_t i = 0; i < num_elements / kElements; ++i) {
    Block block;  // copied: a file aligns blocks to nothing
    std::memcpy(&block, blocks + i * sizeof(Block), sizeof(Block));
    Decode(block, out + i * kElements);
  }
}

template <class Word, class Convert>
void ConvertAll(const std::byte* words, size_t n, float* out,
                const Convert& convert) {
  for (size_t i = 0; i < n; ++i) {
    Word word;
    std::memcpy(&word, words + i * sizeof(Word), sizeof(Word));
    out[i] = convert(word);
  }
}

}  // namespace

void Dequantize(DType type, const std::byte* blocks, size_t n, float* out) {
  CHECK_EQ(n % Traits(type).block_elements, 0u);
  switch (type) {
    case DType::kF32:
      std::memcpy(out, blocks, n * sizeof(float));
      return;
    case DType::kF16:
      return ConvertAll<uint16_t>(blocks, n, out, F16ToF32);
    case DType::kBF16:
      return ConvertAll<uint16_t>(blocks, n, out, BF16ToF32);
    case DType::kF8E4M3:
      return ConvertAll<uint8_t>(blocks, n, out, F8E4M3ToF32);
    case DType::kQ4_0:
      return DecodeAll<BlockQ4_0, 32>(blocks, n, out);
    case DType::kQ4_1:
      return DecodeAll<BlockQ4_1, 32>(blocks, n, out);
    case DType::kQ5_0:
      return DecodeAll<BlockQ5_0, 32>(blocks, n, out);
    case DType::kQ5_1:
      return DecodeAll<BlockQ5_1, 32>(blocks, n, out);
    case DType::kQ8_0:
      return DecodeAll<BlockQ8_0, 32>(blocks, n, out);
    case DType::kQ2_K:
      return DecodeAll<BlockQ2_K, 256>(blocks, n, out);
    case DType::kQ3_K:
      return DecodeAll<BlockQ3_K, 256>(blocks, n, out);
    case DType::kQ4_K:
      return DecodeAll<BlockQ4_K, 256>(blocks, n, out);
    case DType::kQ5_K:
      return DecodeAll<BlockQ5_K, 256>(blocks, n, out);
    case DType::kQ6_K:
      return DecodeAll<BlockQ6_K, 256>(blocks, n, out);
    case DType::kIQ4_NL:
      return DecodeAll<BlockIQ4_NL, 32>(blocks, n, out);
    case DType::kIQ4_XS:
      return DecodeAll<BlockIQ4_XS, 256>(blocks, n, out);
    case DType::kMXFP4:
      return DecodeAll<BlockMXFP4, 32>(blocks, n, out);
    case DType::kF64:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      break;
  }
  CHECK(false);
}

void DequantizeRow(const WeightView& w, size_t row, float* out) {
  CHECK_LT(row, w.rows);
  if (w.layout == Layout::kPanels) {
    return DequantizePanelRow(w.type, w.panel(row / kPanelRows),
                              row % kPanelRows, w.cols, out);
  }
  Dequantize(w.type, w.row(row), w.cols, out);
  if (w.scales == nullptr) return;
  const size_t tiles = (w.cols + w.scale_tile_cols - 1) / w.scale_tile_cols;
  const float* scales = w.scales + row / w.scale_tile_rows * tiles;
  for (size_t c = 0; c < w.cols; ++c) out[c] *= scales[c / w.scale_tile_cols];
}

}  // namespace muster::kernels

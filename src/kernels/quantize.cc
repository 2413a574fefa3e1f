#include "kernels/quantize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "tensor/blocks.h"
#include "tensor/float16.h"

namespace muster::kernels {
namespace {

constexpr int kBlock = 256;
constexpr int kGroup = 16;  // weights that share a scale
constexpr int kGroups = kBlock / kGroup;

// To the nearest; a cast rounds towards zero, and what it is given is not below
// it.
int RoundTo(float x, int low, int high) {
  const auto least = static_cast<float>(low);
  return static_cast<int>(std::clamp(x, least, static_cast<float>(high)) -
                          least + 0.5f) +
         low;
}

float InverseOf(float x) { return x == 0 ? 0 : 1 / x; }

// As the block's float16 keeps it.
float AsHalf(float x, uint16_t* half) {
  constexpr float kLargest = 65504;
  *half = F32ToF16(std::clamp(x, -kLargest, kLargest));
  return F16ToF32(*half);
}

// A scale and a min: weight = scale * code - min, codes 0 to 3.
struct Line {
  float scale = 0;
  float min = 0;
};

float ErrorOf(const float* x, Line line) {
  const float inverse = InverseOf(line.scale);
  float error = 0;
  for (int i = 0; i < kGroup; ++i) {
    const int code = RoundTo((x[i] + line.min) * inverse, 0, 3);
    const float off = line.scale * static_cast<float>(code) - line.min - x[i];
    error += off * off;
  }
  return error;
}

// The line of least squares through the codes that `line` gives; its min is not
// below 0, as the block cannot have it.
Line Fitted(const float* x, Line line) {
  const float inverse = InverseOf(line.scale);
  float sum_x = 0, sum_q = 0, sum_qq = 0, sum_xq = 0;
  for (int i = 0; i < kGroup; ++i) {
    const auto q =
        static_cast<float>(RoundTo((x[i] + line.min) * inverse, 0, 3));
    sum_x += x[i];
    sum_q += q;
    sum_qq += q * q;
    sum_xq += x[i] * q;
  }
  const float determinant = kGroup * sum_qq - sum_q * sum_q;
  if (determinant <= 0) return line;
  Line fitted = {.scale = (kGroup * sum_xq - sum_x * sum_q) / determinant,
                 .min = (sum_xq * sum_q - sum_x * sum_qq) / determinant};
  if (fitted.min < 0) fitted = {.scale = sum_xq / sum_qq, .min = 0};
  return fitted.scale > 0 ? fitted : line;
}

// Ranges narrower than the weights' are tried too: a far weight may be cut off
// for what the others gain.
Line BestLine(const float* x) {
  const auto [low, high] = std::minmax_element(x, x + kGroup);
  const float min = std::max(0.0f, -*low);
  const float range = std::max(0.0f, *high) + min;
  Line best;
  float best_error = std::numeric_limits<float>::infinity();
  for (int step = 0; step < 8; ++step) {
    const float share = 1 - 0.06f * static_cast<float>(step);
    const Line line =
        Fitted(x, {.scale = range * share / 3, .min = min * share});
    const float error = ErrorOf(x, line);
    if (error < best_error) {
      best = line;
      best_error = error;
    }
  }
  return best;
}

// The pair of 4-bit numbers near a line's that is best with the block's d and
// dmin.
uint8_t BestPair(const float* x, Line line, float d, float dmin) {
  const int scale = RoundTo(line.scale * InverseOf(d), 0, 15);
  const int min = RoundTo(line.min * InverseOf(dmin), 0, 15);
  uint8_t best = 0;
  float best_error = std::numeric_limits<float>::infinity();
  for (int s = std::max(0, scale - 1); s <= std::min(15, scale + 1); ++s) {
    for (int m = std::max(0, min - 1); m <= std::min(15, min + 1); ++m) {
      const float error = ErrorOf(x, {.scale = d * static_cast<float>(s),
                                      .min = dmin * static_cast<float>(m)});
      if (error < best_error) {
        best = static_cast<uint8_t>(s | m << 4);
        best_error = error;
      }
    }
  }
  return best;
}

// Low 2 bits of the code of weight i of group g.
void PutLowBits(uint8_t* qs, int g, int i, int code) {
  qs[g / 8 * 32 + g % 2 * 16 + i] |=
      static_cast<uint8_t>((code & 3) << (g % 8 / 2 * 2));
}

BlockQ2_K MakeQ2K(const float* x) {
  std::array<Line, kGroups> lines;
  Line largest;
  for (int g = 0; g < kGroups; ++g) {
    lines[g] = BestLine(x + g * kGroup);
    largest.scale = std::max(largest.scale, lines[g].scale);
    largest.min = std::max(largest.min, lines[g].min);
  }
  BlockQ2_K block{};
  const float d = AsHalf(largest.scale / 15, &block.d);
  const float dmin = AsHalf(largest.min / 15, &block.dmin);
  for (int g = 0; g < kGroups; ++g) {
    const float* group = x + g * kGroup;
    const uint8_t pair = BestPair(group, lines[g], d, dmin);
    block.scales[g] = pair;
    const float inverse = InverseOf(d * static_cast<float>(pair & 15));
    const float min = dmin * static_cast<float>(pair >> 4);
    for (int i = 0; i < kGroup; ++i) {
      PutLowBits(block.qs, g, i, RoundTo((group[i] + min) * inverse, 0, 3));
    }
  }
  return block;
}

// weight = scale * code, codes -4 to 3; the scale may be below 0.
float ErrorOf(const float* x, float scale) {
  const float inverse = InverseOf(scale);
  float error = 0;
  for (int i = 0; i < kGroup; ++i) {
    const float off =
        scale * static_cast<float>(RoundTo(x[i] * inverse, -4, 3)) - x[i];
    error += off * off;
  }
  return error;
}

float Fitted(const float* x, float scale) {
  const float inverse = InverseOf(scale);
  float sum_qq = 0, sum_xq = 0;
  for (int i = 0; i < kGroup; ++i) {
    const auto q = static_cast<float>(RoundTo(x[i] * inverse, -4, 3));
    sum_qq += q * q;
    sum_xq += x[i] * q;
  }
  return sum_qq == 0 ? scale : sum_xq / sum_qq;
}

// The largest weight is code -4, which has no positive twin, or near it.
float BestScale(const float* x) {
  const float largest = *std::max_element(x, x + kGroup, [](float a, float b) {
    return std::abs(a) < std::abs(b);
  });
  float best = 0;
  float best_error = std::numeric_limits<float>::infinity();
  for (int step = 0; step < 12; ++step) {
    const float code = 3 + 0.2f * static_cast<float>(step);
    const float scale = Fitted(x, -largest / code);
    const float error = ErrorOf(x, scale);
    if (error < best_error) {
      best = scale;
      best_error = error;
    }
  }
  return best;
}

int BestMultiple(const float* x, float scale, float d) {
  const int near = RoundTo(scale * InverseOf(d), -32, 31);
  int best = 0;
  float best_error = std::numeric_limits<float>::infinity();
  for (int s = std::max(-32, near - 1); s <= std::min(31, near + 1); ++s) {
    const float error = ErrorOf(x, d * static_cast<float>(s));
    if (error < best_error) {
      best = s;
      best_error = error;
    }
  }
  return best;
}

// What Q3Scale reads.
void PutQ3Scale(uint8_t* scales, int g, int scale) {
  const int bits = scale + 32;
  scales[g % 8] |= static_cast<uint8_t>(g < 8 ? bits & 15 : (bits & 15) << 4);
  scales[8 + g % 4] |= static_cast<uint8_t>(bits >> 4 << (2 * (g / 4)));
}

BlockQ3_K MakeQ3K(const float* x) {
  std::array<float, kGroups> scales{};
  float largest = 0;
  for (int g = 0; g < kGroups; ++g) {
    scales[g] = BestScale(x + g * kGroup);
    if (std::abs(scales[g]) > std::abs(largest)) largest = scales[g];
  }
  BlockQ3_K block{};
  const float d = AsHalf(largest / -32, &block.d);
  for (int g = 0; g < kGroups; ++g) {
    const float* group = x + g * kGroup;
    const int multiple = BestMultiple(group, scales[g], d);
    PutQ3Scale(block.scales, g, multiple);
    const float inverse = InverseOf(d * static_cast<float>(multiple));
    for (int i = 0; i < kGroup; ++i) {
      const int code = RoundTo(group[i] * inverse, -4, 3) + 4;
      PutLowBits(block.qs, g, i, code);
      block.hmask[g % 2 * 16 + i] |= static_cast<uint8_t>(code >> 2 << (g / 2));
    }
  }
  return block;
}

template <class Block>
void QuantizeAll(Block (*make)(const float*), const float* weights,
                 size_t num_elements, std::byte* blocks) {
  std::array<float, kBlock> x;
  for (size_t i = 0; i < num_elements; i += kBlock) {
    for (size_t j = 0; j < kBlock; ++j) {
      x[j] = std::isfinite(weights[i + j]) ? weights[i + j] : 0;
    }
    const Block block = make(x.data());
    std::memcpy(blocks, &block, sizeof(Block));
    blocks += sizeof(Block);
  }
}

}  // namespace

void Quantize(DType type, const float* weights, size_t num_elements,
              std::byte* blocks) {
  CHECK(CanQuantizeTo(type));
  CHECK_EQ(num_elements % kBlock, 0u);
  return type == DType::kQ2_K
             ? QuantizeAll(MakeQ2K, weights, num_elements, blocks)
             : QuantizeAll(MakeQ3K, weights, num_elements, blocks);
}

}  // namespace muster::kernels

#include "kernels/pack_panels.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/bfloat_panels.h"
#include "kernels/with_dtype.h"
#include "tensor/float16.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pack_panels.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/block_codes.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

inline constexpr size_t kQuads = kPanelGroup / kPanelQuad;

// A bit field of each byte of a word, moved to another place in it.
HWY_INLINE uint32_t MoveField(uint32_t word, int from, int bits, int to) {
  const uint32_t mask = 0x01010101u * ((1u << bits) - 1);
  return (word >> from & mask) << to;
}

// One row's codes of a group into its lane of the group's planes. Plane vector
// v of 64 bytes has the row's quad at byte 4 * row.
template <int kBits>
HWY_INLINE void WritePlane(const uint32_t quads[kQuads], int first_bit,
                           size_t row, std::byte* plane) {
  constexpr size_t kQuadsPerVector = 8 / kBits;
  constexpr size_t kVectors = kQuads / kQuadsPerVector;
  for (size_t v = 0; v < kVectors; ++v) {
    uint32_t word = 0;
    for (size_t i = 0; i < kQuadsPerVector; ++i) {
      // Nibbles pair quad v with quad v + 4; smaller fields go in order.
      const size_t quad = kBits == 4 ? v + 4 * i : v * kQuadsPerVector + i;
      word |=
          MoveField(quads[quad], first_bit, kBits, static_cast<int>(i) * kBits);
    }
    std::memcpy(plane + v * 64 + row * 4, &word, 4);
  }
}

template <DType kType>
HWY_INLINE void WriteGroup(const uint8_t* codes, size_t row, std::byte* group) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  uint32_t quads[kQuads];
  std::memcpy(quads, codes, sizeof(quads));
  WritePlane<kFormat.low_bits>(quads, 0, row, group);
  if constexpr (kFormat.high_bits != 0) {
    WritePlane<kFormat.high_bits>(quads, kFormat.low_bits, row,
                                  group + kFormat.low_plane_bytes());
  }
}

HWY_INLINE void WriteHalf(uint16_t value, size_t row, std::byte* halves) {
  std::memcpy(halves + row * 2, &value, 2);
}

// Scales of the file's block `b` of a panel block.
template <DType kType>
HWY_INLINE void WriteScales(const BlockScales& scales, size_t b, size_t row,
                            std::byte* block) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  constexpr size_t kNum = kFormat.scales_per_block();
  constexpr size_t kHalves = kPanelRows * 2;
  if constexpr (kFormat.scales == PanelScales::kHalf ||
                kFormat.scales == PanelScales::kBFloat16) {
    WriteHalf(scales.scale, row, block + b * kHalves);
    if (kFormat.has_mins) {
      WriteHalf(scales.min, row, block + (kNum + b) * kHalves);
    }
  } else {
    WriteHalf(scales.scale, row, block);
    if (kFormat.has_mins) WriteHalf(scales.min, row, block + kHalves);
    std::byte* codes = block + kHalves * (kFormat.has_mins ? 2 : 1);
    for (size_t g = 0; g < kNum; ++g) {
      codes[g * kPanelRows + row] = static_cast<std::byte>(scales.codes[g]);
    }
    if constexpr (kFormat.scales == PanelScales::kHalfTimesUint8) {
      for (size_t g = 0; g < kNum; ++g) {
        codes[(kNum + g) * kPanelRows + row] =
            static_cast<std::byte>(scales.mins[g]);
      }
    }
  }
}

// One row's share of a panel block: `num_blocks` blocks of the file.
template <DType kType>
HWY_INLINE void PackRow(const std::byte* source, size_t num_blocks, size_t row,
                        std::byte* block) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  using Block = typename BlockOf<kType>::Type;
  constexpr size_t kElements =
      kFormat.scales_per_block() == 2 && kFormat.span == 64 ? 32 : 256;
  for (size_t b = 0; b < num_blocks; ++b) {
    Block file_block;  // copied: a file aligns blocks to nothing
    std::memcpy(&file_block, source + b * sizeof(Block), sizeof(Block));
    alignas(64) uint8_t codes[kElements];
    Codes(file_block, codes);
    BlockScales scales;
    Scales(file_block, scales);
    WriteScales<kType>(scales, b, row, block);
    for (size_t g = 0; g < kElements / kPanelGroup; ++g) {
      WriteGroup<kType>(
          codes + g * kPanelGroup, row,
          block + kFormat.scale_bytes() + (b + g) * kFormat.group_bytes());
    }
  }
}

template <DType kType>
void PackTyped(const std::byte* rows, size_t num_rows, size_t cols,
               std::byte* panel) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  const DTypeTraits& traits = Traits(kType);
  const size_t row_bytes = SizeBytes(kType, cols);
  for (size_t c = 0; c < cols; c += kFormat.span) {
    const size_t covered = std::min(kFormat.span, cols - c);
    if (num_rows < kPanelRows || covered < kFormat.span) {
      std::memset(panel, 0, kFormat.block_bytes());
    } else {
      constexpr size_t kScales = kFormat.unpadded_scale_bytes();
      std::memset(panel + kScales, 0, kFormat.scale_bytes() - kScales);
    }
    for (size_t r = 0; r < num_rows; ++r) {
      PackRow<kType>(rows + r * row_bytes + SizeBytes(kType, c),
                     covered / traits.block_elements, r, panel);
    }
    panel += kFormat.block_bytes();
  }
}

void Pack(DType type, const std::byte* rows, size_t num_rows, size_t cols,
          std::byte* panel) {
  WithQuantizedType(type, [&](auto constant) {
    PackTyped<decltype(constant)::value>(rows, num_rows, cols, panel);
  });
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(Pack);

void PackPanel(DType type, const std::byte* rows, size_t num_rows, size_t cols,
               std::byte* panel) {
  CHECK(HasPanels(type));
  CHECK_LE(num_rows, kPanelRows);
  CHECK_EQ(cols % Traits(type).block_elements, 0u);
  if (type == DType::kBF16) return PackBFloatPanel(rows, num_rows, cols, panel);
  HWY_DYNAMIC_DISPATCH(Pack)(type, rows, num_rows, cols, panel);
}

void PackPanels(const WeightView& rows, std::byte* panels) {
  for (size_t r = 0; r < rows.rows; r += kPanelRows) {
    PackPanel(rows.type, rows.row(r), std::min(kPanelRows, rows.rows - r),
              rows.cols, panels);
    panels += PanelBytes(rows.type, rows.cols);
  }
}

namespace {

uint16_t ReadHalf(const std::byte* halves, size_t row) {
  uint16_t half;
  std::memcpy(&half, halves + row * 2, 2);
  return half;
}

struct ScaleAndMin {
  float scale, min;
};

// Of scale group g of a panel block.
ScaleAndMin ReadScales(const PanelFormat& format, const std::byte* block,
                       size_t g, size_t row) {
  const size_t num = format.scales_per_block();
  constexpr size_t kHalves = kPanelRows * 2;
  if (format.scales == PanelScales::kBFloat16) {
    return {BF16ToF32(ReadHalf(block + g * kHalves, row)), 0};
  }
  if (format.scales == PanelScales::kHalf) {
    return {F16ToF32(ReadHalf(block + g * kHalves, row)),
            format.has_mins
                ? F16ToF32(ReadHalf(block + (num + g) * kHalves, row))
                : 0.0f};
  }
  const float d = F16ToF32(ReadHalf(block, row));
  const float dmin =
      format.has_mins ? F16ToF32(ReadHalf(block + kHalves, row)) : 0.0f;
  const std::byte* codes = block + kHalves * (format.has_mins ? 2 : 1);
  const auto code = static_cast<uint8_t>(codes[g * kPanelRows + row]);
  switch (format.scales) {
    case PanelScales::kHalfTimesInt8:
      return {d * static_cast<float>(static_cast<int8_t>(code)), 0};
    case PanelScales::kHalfTimesNibble:
      return {d * static_cast<float>(code & 15),
              dmin * static_cast<float>(code >> 4)};
    case PanelScales::kHalfTimesUint8:
      return {d * static_cast<float>(code),
              dmin * static_cast<float>(static_cast<uint8_t>(
                         codes[(num + g) * kPanelRows + row]))};
    case PanelScales::kHalf:
    case PanelScales::kBFloat16:
      break;
  }
  return {};
}

// Field of `bits` bits of column c of a group, from a plane of such fields.
int ReadField(const std::byte* plane, int bits, size_t c, size_t row) {
  const size_t quad = c / kPanelQuad;
  const size_t per_vector = 8 / static_cast<size_t>(bits);
  const size_t v = bits == 4 ? quad % 4 : quad / per_vector;
  const size_t place = bits == 4 ? quad / 4 : quad % per_vector;
  const auto byte =
      static_cast<uint8_t>(plane[v * 64 + row * 4 + c % kPanelQuad]);
  return byte >> (place * static_cast<size_t>(bits)) & ((1 << bits) - 1);
}

// The integer that column c of a group stands for.
int ReadInteger(const PanelFormat& format, const std::byte* group, size_t c,
                size_t row) {
  int code = ReadField(group, format.low_bits, c, row);
  if (format.high_bits != 0) {
    code |=
        ReadField(group + format.low_plane_bytes(), format.high_bits, c, row)
        << format.low_bits;
  }
  if (format.values != nullptr) return format.values[code];
  return format.offset_log2 < 0 ? code : code - (1 << format.offset_log2);
}

}  // namespace

void DequantizePanelRow(DType type, const std::byte* panel, size_t row,
                        size_t cols, float* out) {
  CHECK(HasPanels(type));
  CHECK_LT(row, kPanelRows);
  if (type == DType::kBF16) return DecodeBFloatPanelRow(panel, row, cols, out);
  const PanelFormat format = PanelFormatOf(type);
  for (size_t c = 0; c < cols; ++c) {
    const std::byte* block = panel + c / format.span * format.block_bytes();
    const size_t in_block = c % format.span;
    const ScaleAndMin scales =
        ReadScales(format, block, in_block / format.scale_group, row);
    const int integer =
        ReadInteger(format,
                    block + format.scale_bytes() +
                        in_block / kPanelGroup * format.group_bytes(),
                    in_block % kPanelGroup, row);
    const float weight = scales.scale * static_cast<float>(integer);
    out[c] = format.has_mins ? weight - scales.min : weight;
  }
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

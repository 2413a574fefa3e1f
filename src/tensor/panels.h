// The layout of quantised and BF16 weights in memory, which
// `docs/formats/panels.md` describes: panels of 16 rows whose columns are
// interleaved, so that one broadcast quad of activations (a pair, with BF16)
// meets all 16 rows at once. Every block type of the files maps to one format
// here, without loss. This table is the only place where the layout is
// declared.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/dtype.h"

namespace muster {

// Grows when bytes of a packed matrix would mean something else.
inline constexpr uint32_t kPanelLayoutVersion = 2;

inline constexpr size_t kPanelRows = 16;
// Columns that share their place in the planes of codes below.
inline constexpr size_t kPanelGroup = 32;
// Columns whose codes stand in one 32-bit lane: what a dot-product instruction
// takes at once.
inline constexpr size_t kPanelQuad = 4;

// A panel of BF16 is a sequence of pairs of columns, each [kPanelRows][2] as
// the file has them, padded with zeros to a multiple of so many columns.
inline constexpr size_t kBFloatSpan = 32;
inline constexpr size_t kBFloatPairBytes = kPanelRows * 2 * 2;

// How the scales (and mins) of a block's groups are stored, 16 rows at a time.
enum class PanelScales : uint8_t {
  kHalf,             // float16 a group
  kBFloat16,         // bfloat16 a group
  kHalfTimesInt8,    // float16 a block, times a signed byte a group
  kHalfTimesUint8,   // the same, unsigned; mins likewise in bytes of their own
  kHalfTimesNibble,  // the same; scale in the low nibble, min in the high one
};

struct PanelFormat {
  size_t span = 0;         // columns of a block
  size_t scale_group = 0;  // columns that share a scale: 32 or 16
  // A code is low_bits from the first plane below high_bits from the second.
  int low_bits = 0;
  int high_bits = 0;
  // The integer that a code stands for is code - 2^offset_log2, or the code
  // itself where this is -1, or values[code] where there is a code book.
  int offset_log2 = -1;
  const int8_t* values = nullptr;
  PanelScales scales = PanelScales::kHalf;
  bool has_mins = false;  // weight = scale * integer - min

  constexpr size_t groups_per_block() const { return span / kPanelGroup; }
  constexpr size_t scales_per_block() const { return span / scale_group; }
  // A block: scales first, padded with zeros to 64 bytes, then the groups'
  // codes.
  constexpr size_t scale_bytes() const {
    return (unpadded_scale_bytes() + 63) / 64 * 64;
  }
  constexpr size_t unpadded_scale_bytes() const {
    const size_t kinds = has_mins ? 2 : 1;
    size_t bytes = 0;
    switch (scales) {
      case PanelScales::kHalf:
      case PanelScales::kBFloat16:
        bytes = scales_per_block() * 2 * kinds;
        break;
      case PanelScales::kHalfTimesInt8:
      case PanelScales::kHalfTimesUint8:
        bytes = (2 + scales_per_block()) * kinds;
        break;
      case PanelScales::kHalfTimesNibble:
        bytes = 2 * kinds + scales_per_block();
        break;
    }
    return bytes * kPanelRows;
  }
  constexpr size_t low_plane_bytes() const {
    return kPanelRows * kPanelGroup * static_cast<size_t>(low_bits) / 8;
  }
  constexpr size_t group_bytes() const {
    return kPanelRows * kPanelGroup *
           static_cast<size_t>(low_bits + high_bits) / 8;
  }
  constexpr size_t block_bytes() const {
    return scale_bytes() + groups_per_block() * group_bytes();
  }
};

constexpr bool IsQuantized(DType type) {
  return type >= DType::kQ4_0 && type <= DType::kMXFP4;
}

// True for the types that are kept in panels wherever they are multiplied.
constexpr bool HasPanels(DType type) {
  return IsQuantized(type) || type == DType::kBF16;
}

// Code books of IQ4_NL and IQ4_XS, and of MXFP4 (twice its values).
// Source: ggml's tables; OCP Microscaling, E2M1.
inline constexpr int8_t kIq4Values[16] = {
    -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
// Twice the E2M1 values, so that they are whole; the scale is halved for it.
inline constexpr int8_t kMxfp4Values[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                            0, -1, -2, -3, -4, -6, -8, -12};

// REQUIRES: IsQuantized(type); else all zeros.
constexpr PanelFormat PanelFormatOf(DType type) {
  using enum PanelScales;
  switch (type) {
    case DType::kQ4_0:
      return {.span = 64, .scale_group = 32, .low_bits = 4, .offset_log2 = 3};
    case DType::kQ4_1:
      return {.span = 64, .scale_group = 32, .low_bits = 4, .has_mins = true};
    case DType::kQ5_0:
      return {.span = 64,
              .scale_group = 32,
              .low_bits = 4,
              .high_bits = 1,
              .offset_log2 = 4};
    case DType::kQ5_1:
      return {.span = 64,
              .scale_group = 32,
              .low_bits = 4,
              .high_bits = 1,
              .has_mins = true};
    case DType::kQ8_0:
      return {.span = 64, .scale_group = 32, .low_bits = 8, .offset_log2 = 7};
    case DType::kIQ4_NL:
      return {
          .span = 64, .scale_group = 32, .low_bits = 4, .values = kIq4Values};
    case DType::kMXFP4:
      return {.span = 64,
              .scale_group = 32,
              .low_bits = 4,
              .values = kMxfp4Values,
              .scales = kBFloat16};
    case DType::kQ2_K:
      return {.span = 256,
              .scale_group = 16,
              .low_bits = 2,
              .scales = kHalfTimesNibble,
              .has_mins = true};
    case DType::kQ3_K:
      return {.span = 256,
              .scale_group = 16,
              .low_bits = 2,
              .high_bits = 1,
              .offset_log2 = 2,
              .scales = kHalfTimesInt8};
    case DType::kQ4_K:
      return {.span = 256,
              .scale_group = 32,
              .low_bits = 4,
              .scales = kHalfTimesUint8,
              .has_mins = true};
    case DType::kQ5_K:
      return {.span = 256,
              .scale_group = 32,
              .low_bits = 4,
              .high_bits = 1,
              .scales = kHalfTimesUint8,
              .has_mins = true};
    case DType::kQ6_K:
      return {.span = 256,
              .scale_group = 16,
              .low_bits = 4,
              .high_bits = 2,
              .offset_log2 = 5,
              .scales = kHalfTimesInt8};
    case DType::kIQ4_XS:
      return {.span = 256,
              .scale_group = 32,
              .low_bits = 4,
              .values = kIq4Values,
              .scales = kHalfTimesInt8};
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF64:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kF8E4M3:
      break;
  }
  return {};
}

// Columns of a BF16 panel, and of the activations that it meets.
constexpr size_t PaddedBFloats(size_t cols) {
  return (cols + kBFloatSpan - 1) / kBFloatSpan * kBFloatSpan;
}

// Bytes of one panel of `cols` columns; a row that stops inside a block is
// padded with weights of zero.
constexpr size_t PanelBytes(DType type, size_t cols) {
  if (type == DType::kBF16) return PaddedBFloats(cols) / 2 * kBFloatPairBytes;
  const PanelFormat format = PanelFormatOf(type);
  return (cols + format.span - 1) / format.span * format.block_bytes();
}

constexpr size_t NumPanels(size_t rows) {
  return (rows + kPanelRows - 1) / kPanelRows;
}

}  // namespace muster

#include "kernels/matmul.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "kernels/dequantize.h"
#include "kernels/row_task.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/dot.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// Tokens whose sums are kept in registers while a row's tiles pass by.
inline constexpr size_t kTokenBlock = 4;

// kTokens products of one row whose tiles are unpacked.
template <bool kSigned, bool kHasMins, size_t kTokens>
HWY_INLINE void DotTiles(const Tile* tiles, size_t num_tiles,
                         const RowTask& task, size_t first) {
  TileSum sums[kTokens];
  const int8_t* q[kTokens];
  const float* scales[kTokens];
  const int16_t* x_sums[kTokens];
  for (size_t i = 0; i < kTokens; ++i) {
    const size_t row = task.tokens[first + i];
    q[i] = task.x->q + row * task.x->padded_cols;
    scales[i] = task.x->scales + row * task.x->padded_cols / 16;
    x_sums[i] = task.x->sums + row * task.x->padded_cols / 16;
    sums[i] = ZeroSum();
  }
  for (size_t t = 0; t < num_tiles; ++t) {
    for (size_t i = 0; i < kTokens; ++i) {
      DotTile<kSigned, kHasMins>(tiles[t], q[i] + t * 256, scales[i] + t * 16,
                                 x_sums[i] + t * 16, sums[i]);
    }
  }
  for (size_t i = 0; i < kTokens; ++i) {
    task.out[(first + i) * task.out_stride] = Finish(sums[i], kHasMins);
  }
}

// One token: each tile is used where it is unpacked.
template <DType kType>
HWY_INLINE float DotRowOnce(const std::byte* row, size_t cols,
                            const ActivationView& x, size_t token) {
  constexpr bool kMins = HasMins(kType);
  const int8_t* q = x.q + token * x.padded_cols;
  const float* scales = x.scales + token * x.padded_cols / 16;
  const int16_t* x_sums = x.sums + token * x.padded_cols / 16;
  Tile tile;
  TileSum sum = ZeroSum();
  for (size_t t = 0; t * 256 < cols; ++t) {
    UnpackTileOfRow<kType>(row, t, cols, tile);
    DotTile<!kMins, kMins>(tile, q + t * 256, scales + t * 16, x_sums + t * 16,
                           sum);
  }
  return Finish(sum, kMins);
}

template <DType kType>
void QuantizedRows(const WeightView& w, size_t row_begin, size_t row_end,
                   RowTask task) {
  constexpr bool kMins = HasMins(kType);
  const size_t row_bytes = w.row_bytes();
  const std::byte* row = w.data + row_begin * row_bytes;
  float* const out = task.out;
  if (task.num_tokens == 1) {
    for (size_t r = row_begin; r < row_end; ++r, row += row_bytes) {
      out[r - row_begin] =
          DotRowOnce<kType>(row, w.cols, *task.x, task.tokens[0]);
    }
    return;
  }
  const size_t num_tiles = (w.cols + 255) / 256;
  std::vector<Tile> tiles(num_tiles);
  for (size_t r = row_begin; r < row_end; ++r, row += row_bytes) {
    for (size_t t = 0; t < num_tiles; ++t) {
      UnpackTileOfRow<kType>(row, t, w.cols, tiles[t]);
    }
    task.out = out + (r - row_begin);
    size_t i = 0;
    for (; i + kTokenBlock <= task.num_tokens; i += kTokenBlock) {
      DotTiles<!kMins, kMins, kTokenBlock>(tiles.data(), num_tiles, task, i);
    }
    for (; i < task.num_tokens; ++i) {
      DotTiles<!kMins, kMins, 1>(tiles.data(), num_tiles, task, i);
    }
  }
}

// The row as floats: where it stands, or decoded into `scratch`.
const float* FloatRow(const WeightView& w, size_t r, float* scratch) {
  const std::byte* row = w.row(r);
  switch (w.type) {
    case DType::kF32:
      return reinterpret_cast<const float*>(row);
    case DType::kF16:
    case DType::kBF16: {
      const auto* words = reinterpret_cast<const uint16_t*>(row);
      size_t c = 0;
      for (; c + 16 <= w.cols; c += 16) {
        Store16(w.type == DType::kF16 ? LoadF16x16(words + c)
                                      : LoadBF16x16(words + c),
                scratch + c);
      }
      for (; c < w.cols; ++c) {
        scratch[c] =
            w.type == DType::kF16 ? F16ToF32(words[c]) : BF16ToF32(words[c]);
      }
      return scratch;
    }
    default:
      DequantizeRow(w, r, scratch);
      return scratch;
  }
}

void FloatRows(const WeightView& w, size_t row_begin, size_t row_end,
               const RowTask& task) {
  std::vector<float> scratch(w.type == DType::kF32 ? 0 : w.cols);
  for (size_t r = row_begin; r < row_end; ++r) {
    const float* row = FloatRow(w, r, scratch.data());
    for (size_t i = 0; i < task.num_tokens; ++i) {
      task.out[i * task.out_stride + (r - row_begin)] =
          DotFloats(row, task.x->x + task.tokens[i] * w.cols, w.cols);
    }
  }
}

void Rows(const WeightView& w, size_t begin, size_t end, const RowTask& task) {
  switch (w.type) {
    case DType::kQ4_0:
      return QuantizedRows<DType::kQ4_0>(w, begin, end, task);
    case DType::kQ4_1:
      return QuantizedRows<DType::kQ4_1>(w, begin, end, task);
    case DType::kQ5_0:
      return QuantizedRows<DType::kQ5_0>(w, begin, end, task);
    case DType::kQ5_1:
      return QuantizedRows<DType::kQ5_1>(w, begin, end, task);
    case DType::kQ8_0:
      return QuantizedRows<DType::kQ8_0>(w, begin, end, task);
    case DType::kQ2_K:
      return QuantizedRows<DType::kQ2_K>(w, begin, end, task);
    case DType::kQ3_K:
      return QuantizedRows<DType::kQ3_K>(w, begin, end, task);
    case DType::kQ4_K:
      return QuantizedRows<DType::kQ4_K>(w, begin, end, task);
    case DType::kQ5_K:
      return QuantizedRows<DType::kQ5_K>(w, begin, end, task);
    case DType::kQ6_K:
      return QuantizedRows<DType::kQ6_K>(w, begin, end, task);
    case DType::kIQ4_NL:
      return QuantizedRows<DType::kIQ4_NL>(w, begin, end, task);
    case DType::kIQ4_XS:
      return QuantizedRows<DType::kIQ4_XS>(w, begin, end, task);
    case DType::kMXFP4:
      return QuantizedRows<DType::kMXFP4>(w, begin, end, task);
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8E4M3:
      return FloatRows(w, begin, end, task);
    case DType::kF64:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
      break;
  }
  CHECK(false);
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(Rows);

void MatMulRows(const WeightView& w, size_t row_begin, size_t row_end,
                const ActivationView& x, std::span<const uint32_t> tokens,
                float* out, size_t out_stride) {
  CHECK_EQ(w.cols, x.cols);
  CHECK(!ReadsQuantized(w.type) || x.q != nullptr);
  if (tokens.empty()) return;
  HWY_DYNAMIC_DISPATCH(Rows)
  (w, row_begin, row_end,
   {.x = &x,
    .tokens = tokens.data(),
    .num_tokens = tokens.size(),
    .out = out,
    .out_stride = out_stride});
}

void MatMulReference(const WeightView& w, const ActivationView& x, float* out) {
  std::vector<float> row(w.cols);
  for (size_t r = 0; r < w.rows; ++r) {
    DequantizeRow(w, r, row.data());
    for (size_t i = 0; i < x.num_rows; ++i) {
      double sum = 0;
      for (size_t c = 0; c < w.cols; ++c) {
        sum += double{row[c]} * x.x[i * w.cols + c];
      }
      out[i * w.rows + r] = static_cast<float>(sum);
    }
  }
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

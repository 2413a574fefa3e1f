#include "kernels/matmul.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/dequantize.h"
#include "kernels/row_task.h"
#include "kernels/scratch.h"
#include "kernels/with_dtype.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/matmul.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/float_dot.h"
#include "kernels/panel_dot.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// ---- Quantised weights ----

// Calls fn(std::integral_constant<size_t, n>()). REQUIRES: 1 <= n <= kMax.
template <size_t kMax, class Fn>
HWY_INLINE void WithConstant(size_t n, const Fn& fn) {
  if constexpr (kMax > 1) {
    if (n < kMax) return WithConstant<kMax - 1>(n, fn);
  }
  fn(std::integral_constant<size_t, kMax>());
}

// Rows [begin, end) of a panel's 16 results to where they belong.
HWY_INLINE void CopyResults(const float* panel_out, size_t begin, size_t end,
                            float* out) {
  for (size_t r = begin; r < end; ++r) out[r - begin] = panel_out[r];
}

template <DType kType>
void OneToken(const WeightView& w, size_t row_begin, size_t row_end,
              const RowTask& task) {
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  const size_t num_blocks = (w.cols + kFormat.span - 1) / kFormat.span;
  const ActivationGroup* x = task.x->row(task.tokens[0]);
  for (size_t row = row_begin; row < row_end; row += kPanelRows) {
    const size_t count = std::min(kPanelRows, row_end - row);
    float* out = task.out + (row - row_begin);
    const std::byte* panel = w.panel(row / kPanelRows);
    if (count == kPanelRows) {
      DotPanel<kType>(panel, num_blocks, x, out);
    } else {
      alignas(64) float all[kPanelRows];
      DotPanel<kType>(panel, num_blocks, x, all);
      CopyResults(all, 0, count, out);
    }
  }
}

// The products of a panel with up to kTokenBlock packed tokens. Not inlined:
// types that are made alike share it.
template <int kBits, size_t kTokens, size_t kScales, bool kHasMins>
MUSTER_KERNELS_OPAQUE void OneBlock(const UnpackedGroup<kScales, kHasMins>* w,
                                    size_t num_groups, const std::byte* packed,
                                    size_t num_rows, float* out,
                                    size_t out_stride) {
  const auto* x = reinterpret_cast<const TokenGroup<kTokens, kScales>*>(packed);
  if (num_rows == kPanelRows) {
    for (size_t part = 0; part < kNumParts; ++part) {
      DotUnpackedPart<kBits, kTokens>(w, num_groups, part, x, out, out_stride);
    }
    return;
  }
  alignas(64) float all[kTokens * kPanelRows];
  for (size_t part = 0; part < kNumParts; ++part) {
    DotUnpackedPart<kBits, kTokens>(w, num_groups, part, x, all, kPanelRows);
  }
  for (size_t t = 0; t < kTokens; ++t) {
    CopyResults(all + t * kPanelRows, 0, num_rows, out + t * out_stride);
  }
}

// Each panel is unpacked once and meets all tokens, a block of them at a time.
template <DType kType>
void ManyTokens(const WeightView& w, size_t row_begin, size_t row_end,
                const RowTask& task) {
  using Traits = DotTraits<kType>;
  constexpr PanelFormat kFormat = PanelFormatOf(kType);
  constexpr size_t kScales = Traits::kScalesPerGroup;
  constexpr size_t kTokenBytes = sizeof(TokenGroup<1, kScales>);
  // Where bytes are multiplied whole, one kernel serves every width.
  constexpr int kBits = kHasWideDot ? 8 : Traits::kBits;
  const size_t num_blocks = (w.cols + kFormat.span - 1) / kFormat.span;
  const size_t num_groups = num_blocks * kFormat.groups_per_block();
  const size_t unpacked_bytes = num_groups * sizeof(UnpackedGroupOf<kType>);
  std::byte* scratch = ThreadScratch(
      Scratch::kMatMul,
      unpacked_bytes + task.num_tokens * num_groups * kTokenBytes);
  auto* unpacked = reinterpret_cast<UnpackedGroupOf<kType>*>(scratch);
  std::byte* packed = scratch + unpacked_bytes;

  const auto each_block = [&](const auto& fn) {
    for (size_t t = 0; t < task.num_tokens; t += kTokenBlock) {
      WithConstant<kTokenBlock>(
          std::min(kTokenBlock, task.num_tokens - t), [&](auto count) {
            fn(count, t, packed + t * num_groups * kTokenBytes);
          });
    }
  };
  each_block([&](auto count, size_t t, std::byte* at) {
    const ActivationGroup* rows[kTokenBlock];
    for (size_t i = 0; i < count; ++i) {
      rows[i] = task.x->row(task.tokens[t + i]);
    }
    PackTokens(rows, num_groups, Traits::kOffsetLog2,
               reinterpret_cast<TokenGroup<count, kScales>*>(at));
  });
  for (size_t row = row_begin; row < row_end; row += kPanelRows) {
    UnpackPanel<kType>(w.panel(row / kPanelRows), num_blocks, unpacked);
    const size_t num_rows = std::min(kPanelRows, row_end - row);
    each_block([&](auto count, size_t t, const std::byte* at) {
      OneBlock<kBits, count>(unpacked, num_groups, at, num_rows,
                             task.out + t * task.out_stride + (row - row_begin),
                             task.out_stride);
    });
  }
}

void PanelRows(const WeightView& w, size_t row_begin, size_t row_end,
               const RowTask& task) {
  WithQuantizedType(w.type, [&](auto constant) {
    constexpr DType kType = decltype(constant)::value;
    if (task.num_tokens == 1) {
      OneToken<kType>(w, row_begin, row_end, task);
    } else {
      ManyTokens<kType>(w, row_begin, row_end, task);
    }
  });
}

// ---- Float weights ----

// All tokens with kRows rows.
template <DType kType, size_t kRows>
void FloatRowBlock(const std::byte* const* rows, size_t cols,
                   const RowTask& task, float* out) {
  for (size_t t = 0; t < task.num_tokens; t += kFloatTokens) {
    WithConstant<kFloatTokens>(
        std::min(kFloatTokens, task.num_tokens - t), [&](auto count) {
          const float* x[kFloatTokens];
          for (size_t i = 0; i < count; ++i) {
            x[i] = task.x->x + task.tokens[t + i] * cols;
          }
          DotFloatBlock<kType, kRows, count>(
              rows, x, cols, out + t * task.out_stride, task.out_stride);
        });
  }
}

// row_of(r) gives where row r starts; it is called kFloatRows rows at a time.
template <DType kType, class RowOf>
void FloatRows(size_t row_begin, size_t row_end, size_t cols,
               const RowTask& task, const RowOf& row_of) {
  for (size_t r = row_begin; r < row_end; r += kFloatRows) {
    WithConstant<kFloatRows>(
        std::min(kFloatRows, row_end - r), [&](auto count) {
          const std::byte* rows[kFloatRows];
          for (size_t i = 0; i < count; ++i) rows[i] = row_of(r + i, i);
          FloatRowBlock<kType, count>(rows, cols, task,
                                      task.out + (r - row_begin));
        });
  }
}

void PlainRows(const WeightView& w, size_t row_begin, size_t row_end,
               const RowTask& task) {
  const auto in_place = [&](size_t r, size_t) { return w.row(r); };
  switch (w.type) {
    case DType::kF32:
      return FloatRows<DType::kF32>(row_begin, row_end, w.cols, task, in_place);
    case DType::kF16:
      return FloatRows<DType::kF16>(row_begin, row_end, w.cols, task, in_place);
    case DType::kBF16:
      return FloatRows<DType::kBF16>(row_begin, row_end, w.cols, task,
                                     in_place);
    default:
      break;
  }
  auto* decoded = reinterpret_cast<float*>(
      ThreadScratch(Scratch::kMatMul, kFloatRows * w.cols * sizeof(float)));
  FloatRows<DType::kF32>(
      row_begin, row_end, w.cols, task, [&](size_t r, size_t i) {
        DequantizeRow(w, r, decoded + i * w.cols);
        return reinterpret_cast<const std::byte*>(decoded + i * w.cols);
      });
}

void Rows(const WeightView& w, size_t begin, size_t end, const RowTask& task) {
  if (HasPanels(w.type)) {
    PanelRows(w, begin, end, task);
  } else {
    PlainRows(w, begin, end, task);
  }
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
  CHECK_EQ(row_begin % kRowGrain, 0u);
  if (HasPanels(w.type)) {
    CHECK(w.layout == Layout::kPanels && x.groups != nullptr);
  } else {
    CHECK(x.x != nullptr);
  }
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

#include "kernels/matmul.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "base/check.h"
#include "kernels/bfloat_matmul.h"
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
#include "kernels/token_blocks.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// ---- Quantised weights ----

// The first `count` of a panel's 16 results to where they belong.
HWY_INLINE void CopyResults(const float* panel_out, size_t count, float* out) {
  if (count == kPanelRows) {
    std::memcpy(out, panel_out, kPanelRows * sizeof(float));
  } else {
    std::copy_n(panel_out, count, out);
  }
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
      CopyResults(all, count, out);
    }
  }
}

// Groups of a panel that are unpacked at a time: they stay in the first-level
// cache while all tokens pass by.
constexpr size_t kChunkGroups = 16;

// Adds the products of a panel's chunk with up to kTokenBlock packed tokens to
// sums [kTokens, kPanelRows]. Not inlined: types that are made alike share it.
template <int kBits, size_t kTokens, size_t kScales, bool kHasMins>
MUSTER_KERNELS_OPAQUE void AddChunk(const UnpackedGroup<kScales, kHasMins>* w,
                                    size_t num_groups, const std::byte* packed,
                                    float* sums) {
  const auto* x = reinterpret_cast<const TokenGroup<kTokens, kScales>*>(packed);
  for (size_t part = 0; part < kNumParts; ++part) {
    DotUnpackedPart<kBits, kTokens>(w, num_groups, part, x, sums);
  }
}

HWY_INLINE size_t NumTokenBlocks(size_t num_tokens) {
  return (num_tokens + kTokenBlock - 1) / kTokenBlock;
}
HWY_INLINE size_t CacheLines(size_t size_bytes) {
  return (size_bytes + 63) / 64 * 64;
}

// A panel is unpacked chunk by chunk, and each chunk meets all tokens, a block
// of them at a time, while the next chunk comes from memory.
template <DType kType>
class TokensWithPanels {
 public:
  TokensWithPanels(const WeightView& w, const RowTask& task)
      : w_(w),
        task_(task),
        num_blocks_((w.cols + kFormat.span - 1) / kFormat.span),
        max_tokens_(std::min(task.num_tokens,
                             TokensInCache(num_groups() * kTokenBytes))) {
    std::byte* scratch = ThreadScratch(
        Scratch::kMatMul, kUnpackedBytes + max_tokens_ * kSumsBytes +
                              max_tokens_ * num_groups() * kTokenBytes);
    unpacked_ = reinterpret_cast<UnpackedGroupOf<kType>*>(scratch);
    sums_ = reinterpret_cast<float*>(scratch + kUnpackedBytes);
    packed_ = scratch + kUnpackedBytes + max_tokens_ * kSumsBytes;
  }

  void Run(size_t row_begin, size_t row_end) {
    for (size_t first = 0; first < task_.num_tokens; first += max_tokens_) {
      const size_t count = std::min(max_tokens_, task_.num_tokens - first);
      Pack(first, count);
      for (size_t row = row_begin; row < row_end; row += kPanelRows) {
        MultiplyPanel(w_.panel(row / kPanelRows), count);
        const size_t num_rows = std::min(kPanelRows, row_end - row);
        float* out = task_.out + first * task_.out_stride + (row - row_begin);
        for (size_t t = 0; t < count; ++t) {
          CopyResults(sums_ + t * kPanelRows, num_rows,
                      out + t * task_.out_stride);
        }
      }
    }
  }

 private:
  using Traits = DotTraits<kType>;
  static constexpr PanelFormat kFormat = PanelFormatOf(kType);
  static constexpr size_t kScales = Traits::kScalesPerGroup;
  static constexpr size_t kTokenBytes = sizeof(TokenGroup<1, kScales>);
  static constexpr size_t kSumsBytes = kPanelRows * sizeof(float);
  // Where bytes are multiplied whole, one kernel serves every width.
  static constexpr int kBits = kHasWideDot ? 8 : Traits::kBits;
  static constexpr size_t kBlockGroups = kFormat.groups_per_block();
  static constexpr size_t kChunkBlocks =
      std::max<size_t>(1, kChunkGroups / kBlockGroups);
  static constexpr size_t kUnpackedBytes =
      kChunkBlocks * kBlockGroups * sizeof(UnpackedGroupOf<kType>);

  size_t num_groups() const { return num_blocks_ * kBlockGroups; }

  std::byte* PackedBlock(size_t token) const {
    return packed_ + token * num_groups() * kTokenBytes;
  }

  void Pack(size_t first, size_t num_tokens) {
    EachTokenBlock(num_tokens, [&](auto count, size_t t) {
      const ActivationGroup* rows[kTokenBlock];
      for (size_t i = 0; i < count; ++i) {
        rows[i] = task_.x->row(task_.tokens[first + t + i]);
      }
      PackTokens(rows, num_groups(), Traits::kOffsetLog2,
                 reinterpret_cast<TokenGroup<count, kScales>*>(PackedBlock(t)));
    });
  }

  // sums = the panel . the packed tokens
  void MultiplyPanel(const std::byte* panel, size_t num_tokens) {
    std::fill_n(sums_, num_tokens * kPanelRows, 0.0f);
    for (size_t b = 0; b < num_blocks_; b += kChunkBlocks) {
      const size_t num_blocks = std::min(kChunkBlocks, num_blocks_ - b);
      const std::byte* next = panel + num_blocks * kFormat.block_bytes();
      UnpackPanel<kType>(panel, num_blocks, unpacked_);
      const size_t chunk_groups = num_blocks * kBlockGroups;
      // The next chunk's bytes, a share for each block of tokens.
      const size_t ahead = CacheLines(kChunkBlocks * kFormat.block_bytes() /
                                      NumTokenBlocks(num_tokens));
      EachTokenBlock(num_tokens, [&](auto count, size_t t) {
        Prefetch(next + t / kTokenBlock * ahead, ahead);
        const size_t at = b * kBlockGroups * sizeof(TokenGroup<count, kScales>);
        AddChunk<kBits, count>(unpacked_, chunk_groups, PackedBlock(t) + at,
                               sums_ + t * kPanelRows);
      });
      panel = next;
    }
  }

  const WeightView& w_;
  const RowTask& task_;
  size_t num_blocks_;
  size_t max_tokens_;
  UnpackedGroupOf<kType>* unpacked_;  // [kChunkBlocks * kBlockGroups]
  float* sums_;                       // [max_tokens_, kPanelRows]
  std::byte* packed_;  // blocks of TokenGroup<tokens of the block>
};

void PanelRows(const WeightView& w, size_t row_begin, size_t row_end,
               const RowTask& task) {
  WithQuantizedType(w.type, [&](auto constant) {
    constexpr DType kType = decltype(constant)::value;
    if (task.num_tokens == 1) {
      OneToken<kType>(w, row_begin, row_end, task);
    } else {
      TokensWithPanels<kType>(w, task).Run(row_begin, row_end);
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
  if (IsQuantized(w.type)) {
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
  if (tokens.empty()) return;
  const RowTask task = {.x = &x,
                        .tokens = tokens.data(),
                        .num_tokens = tokens.size(),
                        .out = out,
                        .out_stride = out_stride};
  if (w.type == DType::kBF16) {
    return BFloatMatMulRows(w, row_begin, row_end, task);
  }
  if (IsQuantized(w.type)) {
    CHECK(w.layout == Layout::kPanels && x.groups != nullptr);
  } else {
    CHECK(x.x != nullptr);
  }
  HWY_DYNAMIC_DISPATCH(Rows)(w, row_begin, row_end, task);
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

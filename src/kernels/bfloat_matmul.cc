#include "kernels/bfloat_matmul.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/instruction_set.h"
#include "kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bfloat_matmul.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/bfloat_dot.h"
#include "kernels/token_blocks.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// Pairs of a panel that meet all tokens before the next ones do: half of a
// first-level cache.
constexpr size_t kChunkPairs = 256;

template <class Products, size_t kTokens>
void AddPairsOfAllParts(const std::byte* panel, size_t num_pairs,
                        const uint16_t* const* x, BFloatSums* sums) {
  for (size_t part = 0; part < kNumParts; part += kPartsAtOnce<kTokens>) {
    AddPairs<Products, kTokens>(panel, num_pairs, part, x, sums);
  }
}

// Blocks of up to kTokenBlock tokens, whose sums fit in registers, meet a panel
// chunk by chunk.
template <class Products>
class TokensWithBFloats {
 public:
  TokensWithBFloats(const WeightView& w, const RowTask& task)
      : w_(w),
        task_(task),
        num_pairs_(PaddedBFloats(w.cols) / 2),
        max_tokens_(
            std::min(task.num_tokens,
                     TokensInCache(num_pairs_ * 2 * sizeof(uint16_t)))) {
    std::byte* scratch = ThreadScratch(
        Scratch::kMatMul,
        max_tokens_ * (sizeof(BFloatSums) + sizeof(const uint16_t*)));
    sums_ = reinterpret_cast<BFloatSums*>(scratch);
    x_ = reinterpret_cast<const uint16_t**>(scratch +
                                            max_tokens_ * sizeof(BFloatSums));
  }

  void Run(size_t row_begin, size_t row_end) {
    for (size_t first = 0; first < task_.num_tokens; first += max_tokens_) {
      const size_t count = std::min(max_tokens_, task_.num_tokens - first);
      for (size_t row = row_begin; row < row_end; row += kPanelRows) {
        MultiplyPanel(w_.panel(row / kPanelRows), first, count);
        float* out = task_.out + first * task_.out_stride + (row - row_begin);
        for (size_t t = 0; t < count; ++t, out += task_.out_stride) {
          FinishSums(sums_[t], std::min(kPanelRows, row_end - row), out);
        }
      }
    }
  }

 private:
  void MultiplyPanel(const std::byte* panel, size_t first, size_t count) {
    std::fill_n(reinterpret_cast<float*>(sums_),
                count * sizeof(BFloatSums) / sizeof(float), 0.0f);
    for (size_t t = 0; t < count; ++t) {
      x_[t] = task_.x->bfloat_row(task_.tokens[first + t]);
    }
    for (size_t p = 0; p < num_pairs_; p += kChunkPairs) {
      const size_t num = std::min(kChunkPairs, num_pairs_ - p);
      EachTokenBlock(count, [&](auto tokens, size_t t) {
        AddPairsOfAllParts<Products, tokens>(panel + p * kBFloatPairBytes, num,
                                             x_ + t, sums_ + t);
      });
      for (size_t t = 0; t < count; ++t) x_[t] += 2 * num;
    }
  }

  const WeightView& w_;
  const RowTask& task_;
  size_t num_pairs_;
  size_t max_tokens_;
  BFloatSums* sums_;    // [max_tokens_]
  const uint16_t** x_;  // [max_tokens_], at the chunk in hand
};

void BFloatRows(const WeightView& w, size_t begin, size_t end,
                const RowTask& task) {
  const FlushDenormals flush;
#if HWY_TARGET == HWY_AVX3_DL
  if (UsesBFloatProducts()) {
    return TokensWithBFloats<PairProducts>(w, task).Run(begin, end);
  }
#endif
  TokensWithBFloats<FusedProducts>(w, task).Run(begin, end);
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(BFloatRows);

void BFloatMatMulRows(const WeightView& w, size_t row_begin, size_t row_end,
                      const RowTask& task) {
  CHECK(w.layout == Layout::kPanels && task.x->bfloats != nullptr);
  HWY_DYNAMIC_DISPATCH(BFloatRows)(w, row_begin, row_end, task);
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

// How products with weights in panels cut tokens: into blocks whose sums fit in
// registers, and into as many blocks as stay in a cache while panels pass by.
#if defined(MUSTER_KERNELS_TOKEN_BLOCKS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef MUSTER_KERNELS_TOKEN_BLOCKS_H_
#undef MUSTER_KERNELS_TOKEN_BLOCKS_H_
#else
#define MUSTER_KERNELS_TOKEN_BLOCKS_H_
#endif

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "kernels/panel_simd.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

// Calls fn(std::integral_constant<size_t, n>()). REQUIRES: 1 <= n <= kMax.
template <size_t kMax, class Fn>
HWY_INLINE void WithConstant(size_t n, const Fn& fn) {
  if constexpr (kMax > 1) {
    if (n < kMax) return WithConstant<kMax - 1>(n, fn);
  }
  fn(std::integral_constant<size_t, kMax>());
}

// Calls fn(number, first token) for blocks of tokens, the number a constant.
template <class Fn>
HWY_INLINE void EachTokenBlock(size_t num_tokens, const Fn& fn) {
  for (size_t t = 0; t < num_tokens; t += kTokenBlock) {
    WithConstant<kTokenBlock>(std::min(kTokenBlock, num_tokens - t),
                              [&](auto count) { fn(count, t); });
  }
}

// As many tokens of `token_bytes` each as the second-level cache keeps beside
// what passes through, in whole blocks: a panel is read again for the next
// ones.
HWY_INLINE size_t TokensInCache(size_t token_bytes) {
  constexpr size_t kBytes = size_t{384} << 10;
  const size_t fit = kBytes / token_bytes;
  return std::max<size_t>(fit / kTokenBlock * kTokenBlock, 4 * kTokenBlock);
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // toggle

#include <algorithm>
#include <limits>

#include "kernels/attention.h"
#include "kernels/attention_partial.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_merge.cc"
#include "hwy/foreach_target.h"  // must precede highway.h
#include "hwy/highway.h"

#include "kernels/simd.h"

HWY_BEFORE_NAMESPACE();
namespace muster::kernels::HWY_NAMESPACE {

void MergePartial(const float* HWY_RESTRICT partial, size_t head_dim,
                  float* HWY_RESTRICT state) {
  const float lowest = -std::numeric_limits<float>::infinity();
  const float max = std::max(state[kPartialMax], partial[kPartialMax]);
  const float base = max == lowest ? 0.0f : max;
  alignas(64) float factors[16] = {state[kPartialMax] - base,
                                   partial[kPartialMax] - base};
  Store16(Exp16(Load16(factors)), factors);
  const F32x16 keep = Set16(factors[0]);
  const F32x16 take = Set16(factors[1]);
  // Lanes of the head: max and sum, then lanes that nobody reads.
  const auto merge = [&](size_t i) {
    Store16(MulAdd16(take, Load16(partial + i), Mul16(keep, Load16(state + i))),
            state + i);
  };
  for (size_t i = 0; i < PartialFloats(head_dim); i += 16) merge(i);
  state[kPartialMax] = max;
}

void FinishState(const float* HWY_RESTRICT state, size_t head_dim,
                 float* HWY_RESTRICT out) {
  const F32x16 sum = Set16(state[kPartialSum]);
  for (size_t i = 0; i < head_dim; i += 16) {
    const F32x16 result = Div16(Load16(state + kPartialValues + i), sum);
    if (i + 16 <= head_dim) {
      Store16(result, out + i);
    } else {
      StorePartial16(result, out + i, head_dim - i);
    }
  }
}

}  // namespace muster::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace muster::kernels {

HWY_EXPORT(MergePartial);
HWY_EXPORT(FinishState);

void ClearStates(const QueryTile& tile, float* states) {
  const size_t floats = PartialFloats(tile.head_dim);
  std::fill(states, states + tile.num_queries() * floats, 0.0f);
  for (size_t query = 0; query < tile.num_queries(); ++query) {
    states[query * floats + kPartialMax] =
        -std::numeric_limits<float>::infinity();
  }
}

void MergeBlock(const QueryTile& tile, size_t block, const float* partials,
                float* states) {
  const size_t floats = PartialFloats(tile.head_dim);
  for (size_t query = 0; query < tile.num_queries(); ++query) {
    const PositionRange seen = VisibleInBlock(
        tile.ranges[query / tile.num_heads], block * kAttentionBlock);
    if (seen.begin >= seen.end) continue;
    HWY_DYNAMIC_DISPATCH(MergePartial)
    (partials + query * floats, tile.head_dim, states + query * floats);
  }
}

void FinishStates(const QueryTile& tile, const float* states, float* out) {
  for (size_t query = 0; query < tile.num_queries(); ++query) {
    const size_t row = query / tile.num_heads;
    const size_t head = query % tile.num_heads;
    HWY_DYNAMIC_DISPATCH(FinishState)
    (states + query * PartialFloats(tile.head_dim), tile.head_dim,
     out + row * tile.row_stride + head * tile.head_dim);
  }
}

}  // namespace muster::kernels
#endif  // HWY_ONCE

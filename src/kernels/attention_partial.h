// What a partial result of attention consists of, and what part of a block a
// row sees: shared by attention.cc and attention_merge.cc.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/attention.h"

namespace muster::kernels {

// Places in a partial result or a state, in floats.
inline constexpr size_t kPartialMax = 0;
inline constexpr size_t kPartialSum = 1;
inline constexpr size_t kPartialValues = 16;  // [padded head dim], aligned
static_assert(PartialFloats(0) == kPartialValues);

// The part of the block from `block_begin` that lies in `range`, counted from
// there; begin >= end: none.
inline PositionRange VisibleInBlock(const PositionRange& range,
                                    size_t block_begin) {
  const size_t end = std::min(range.end, block_begin + kAttentionBlock);
  return {.begin = std::max(range.begin, block_begin) - block_begin,
          .end = std::max(end, block_begin) - block_begin};
}

}  // namespace muster::kernels

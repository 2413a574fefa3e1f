// Attention of the query heads that share one KV head, block by block over the
// cache: out = softmax(scale * q K^T) V over the positions that a row sees.
//
// A block is kAttentionBlock positions from a multiple of it. Each block gives
// a partial result of its own, and a row's partials are merged in the order of
// blocks. So the bits of a row's result depend on its query, its range and its
// cache alone: not on the rows beside it, on who computed which block, or on
// the instruction set.
//
//   score(p)   = sum over i in order of (scale * q[i]) * k_p[i], fused
//   max, sum   = of the scores of the block's visible positions, and of
//                w(p) = exp(score(p) - max): 16 lanes by p % 16, then one tree
//   values[i]  = sum over p in order of w(p) * v_p[i], fused
//   merge      = both sides scaled by exp(own max - larger max), then added
//
// All functions are thread-safe.
#pragma once

#include <cstddef>

#include "kernels/kv_tiles.h"

namespace muster::kernels {

inline constexpr size_t kAttentionBlock = 256;  // positions
static_assert(kAttentionBlock % kKvTilePositions == 0);

// Positions [begin, end), begin < end.
struct PositionRange {
  size_t begin = 0;
  size_t end = 0;
};

// Some rows of one sequence, and in each the query heads of one KV head. Query
// number row * num_heads + head is q[row * row_stride + head * head_dim].
struct QueryTile {
  const float* q = nullptr;               // [num_rows, row_stride]
  size_t row_stride = 0;                  // in floats
  size_t num_heads = 0;                   // that follow each other in a row
  const PositionRange* ranges = nullptr;  // [num_rows], neither end descends
  size_t num_rows = 0;
  size_t head_dim = 0;

  size_t num_queries() const { return num_rows * num_heads; }
};

// Floats of a partial result: largest score, sum of weights, weighted values.
// A query's partials and states are [PartialFloats(head_dim)] each.
constexpr size_t PartialFloats(size_t head_dim) {
  return 16 + PaddedHeadDim(head_dim);
}

// Scales the queries and lays them out as AttendBlock reads them, for the
// instruction set in use.   packed: [num_queries, head_dim]
void PackQueries(const QueryTile& tile, float scale, float* packed);

// partials[query] = the attention of that query over the positions of `block`
// that its row sees; not written where it sees none.
// kv: the tiles of that block alone; partials: [num_queries, PartialFloats]
void AttendBlock(const QueryTile& tile, const float* packed,
                 const KvHeadView& kv, size_t block, float* partials);

// states[query] = nothing seen yet.   states: [num_queries, PartialFloats]
void ClearStates(const QueryTile& tile, float* states);

// states[query] takes in partials[query], where its row sees any of `block`.
// Call in the order of blocks.
void MergeBlock(const QueryTile& tile, size_t block, const float* partials,
                float* states);

// out = weighted values / sum of weights, laid out as the queries are.
// out: [num_rows, row_stride]
void FinishStates(const QueryTile& tile, const float* states, float* out);

// The definition of one query's result in double. Tests compare to this.
// q, out: [head_dim]
void AttentionReference(const float* q, const KvHeadView& kv,
                        PositionRange range, float scale, float* out);

}  // namespace muster::kernels

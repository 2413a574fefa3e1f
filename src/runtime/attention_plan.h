// How a batch's attention is cut into tasks. The cut decides who computes what
// and never what comes out (see kernels/attention.h).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/attention.h"
#include "runtime/batch_row.h"

namespace muster::runtime {

inline constexpr size_t kNotSplit = static_cast<size_t>(-1);

// Blocks [first_block, end_block) of one KV head for rows of one sequence.
struct AttentionTask {
  size_t first_row = 0;
  size_t num_rows = 0;
  size_t kv_head = 0;
  size_t first_block = 0;
  size_t end_block = 0;
  // The blocks that the tile sees in all; the task has all of them unless the
  // tile is split.
  size_t tile_first_block = 0;
  size_t tile_end_block = 0;
  size_t split = kNotSplit;    // number of the split tile
  size_t partials_offset = 0;  // of the split tile, in floats
};

class AttentionPlan {
 public:
  struct Shape {
    size_t heads_per_kv = 0;
    size_t num_kv_heads = 0;
    size_t head_dim = 0;
    size_t window = 0;  // 0: none
    size_t num_threads = 0;
  };

  // Plans anew. Tiles are rows of one sequence that follow each other, few
  // enough for a core's caches. Long tiles are split when there are too few to
  // keep all threads busy; the longest tasks come first.
  void Make(std::span<const BatchRow> batch, const Shape& shape);

  const std::vector<AttentionTask>& tasks() const { return tasks_; }
  // What each row of the batch sees.   [rows]
  const std::vector<kernels::PositionRange>& ranges() const { return ranges_; }
  // Tasks of each split tile.   [splits]
  const std::vector<size_t>& split_sizes() const { return split_sizes_; }
  size_t split_floats() const { return split_floats_; }
  size_t max_tile_queries() const { return max_tile_queries_; }

 private:
  struct Tile {
    size_t first_row, num_rows, first_block, end_block;
    size_t num_blocks() const { return end_block - first_block; }
  };
  void FindTiles(std::span<const BatchRow> batch, const Shape& shape);
  void AddTasks(const Tile& tile, size_t kv_head, size_t blocks_per_task,
                const Shape& shape);

  std::vector<kernels::PositionRange> ranges_;
  std::vector<Tile> tiles_;
  std::vector<AttentionTask> tasks_;
  std::vector<size_t> split_sizes_;
  size_t split_floats_ = 0;
  size_t max_tile_queries_ = 0;
};

}  // namespace muster::runtime

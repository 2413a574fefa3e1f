#include "runtime/attention_plan.h"

#include <algorithm>

namespace muster::runtime {
namespace {

// Queries that share a block of keys and values while it lies in the
// second-level cache, beside their own results.
constexpr size_t kTileQueries = 64;
// A thread's tasks, where there is enough to split: they balance, and each is
// long enough to stream.
constexpr size_t kTasksPerThread = 8;
// Partial results wait in memory until their tile is whole. With more than this
// many floats of them the tiles are left whole.
constexpr size_t kMaxSplitFloats = size_t{16} << 20;

}  // namespace

void AttentionPlan::Make(std::span<const BatchRow> batch, const Shape& shape) {
  FindTiles(batch, shape);
  size_t num_blocks = 0;
  size_t all_floats = 0;  // of partial results, if every tile were split
  for (const Tile& tile : tiles_) {
    num_blocks += tile.num_blocks() * shape.num_kv_heads;
    all_floats += tile.num_blocks() * shape.num_kv_heads * tile.num_rows *
                  shape.heads_per_kv * kernels::PartialFloats(shape.head_dim);
  }
  const size_t blocks_per_task =
      all_floats > kMaxSplitFloats
          ? num_blocks
          : std::max<size_t>(
                1, num_blocks / (kTasksPerThread * shape.num_threads));
  tasks_.clear();
  split_sizes_.clear();
  split_floats_ = 0;
  for (const Tile& tile : tiles_) {
    for (size_t kv_head = 0; kv_head < shape.num_kv_heads; ++kv_head) {
      AddTasks(tile, kv_head, blocks_per_task, shape);
    }
  }
  std::stable_sort(tasks_.begin(), tasks_.end(),
                   [](const AttentionTask& a, const AttentionTask& b) {
                     return a.end_block - a.first_block >
                            b.end_block - b.first_block;
                   });
}

void AttentionPlan::FindTiles(std::span<const BatchRow> batch,
                              const Shape& shape) {
  const size_t max_rows =
      std::max<size_t>(1, kTileQueries / shape.heads_per_kv);
  ranges_.clear();
  tiles_.clear();
  max_tile_queries_ = 0;
  for (size_t row = 0; row < batch.size(); ++row) {
    const size_t end = batch[row].position + 1;
    const size_t begin =
        shape.window != 0 && end > shape.window ? end - shape.window : 0;
    ranges_.push_back({.begin = begin, .end = end});
    const size_t end_block =
        (end + kernels::kAttentionBlock - 1) / kernels::kAttentionBlock;
    if (!tiles_.empty() && batch[row].kv == batch[row - 1].kv &&
        tiles_.back().num_rows < max_rows) {
      ++tiles_.back().num_rows;
      tiles_.back().end_block = end_block;
    } else {
      tiles_.push_back({.first_row = row,
                        .num_rows = 1,
                        .first_block = begin / kernels::kAttentionBlock,
                        .end_block = end_block});
    }
    max_tile_queries_ = std::max(max_tile_queries_,
                                 tiles_.back().num_rows * shape.heads_per_kv);
  }
}

void AttentionPlan::AddTasks(const Tile& tile, size_t kv_head,
                             size_t blocks_per_task, const Shape& shape) {
  AttentionTask task = {.first_row = tile.first_row,
                        .num_rows = tile.num_rows,
                        .kv_head = kv_head,
                        .first_block = tile.first_block,
                        .end_block = tile.end_block,
                        .tile_first_block = tile.first_block,
                        .tile_end_block = tile.end_block};
  if (tile.num_blocks() <= blocks_per_task) {
    tasks_.push_back(task);
    return;
  }
  task.split = split_sizes_.size();
  task.partials_offset = split_floats_;
  split_sizes_.push_back((tile.num_blocks() + blocks_per_task - 1) /
                         blocks_per_task);
  split_floats_ += tile.num_blocks() * tile.num_rows * shape.heads_per_kv *
                   kernels::PartialFloats(shape.head_dim);
  while (task.first_block < tile.end_block) {
    task.end_block =
        std::min(tile.end_block, task.first_block + blocks_per_task);
    tasks_.push_back(task);
    task.first_block = task.end_block;
  }
}

}  // namespace muster::runtime

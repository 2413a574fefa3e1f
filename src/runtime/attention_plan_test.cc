#include "runtime/attention_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

namespace muster::runtime {
namespace {

constexpr size_t kB = kernels::kAttentionBlock;

// Caches are only told apart here, never read.
KvCache* Cache(uintptr_t id) { return reinterpret_cast<KvCache*>(id << 6); }

std::vector<BatchRow> Rows(uintptr_t cache, size_t first, size_t count) {
  std::vector<BatchRow> rows;
  for (size_t i = 0; i < count; ++i) {
    rows.push_back({.position = first + i, .kv = Cache(cache)});
  }
  return rows;
}

AttentionPlan::Shape Shape(size_t num_threads, size_t window = 0) {
  return {.heads_per_kv = 8,
          .num_kv_heads = 4,
          .head_dim = 128,
          .window = window,
          .num_threads = num_threads};
}

std::vector<BatchRow> MixedBatch() {
  std::vector<BatchRow> batch = Rows(1, 5 * kB - 3, 1);
  for (const auto& more : {Rows(2, 0, 70), Rows(3, 40 * kB, 3)}) {
    batch.insert(batch.end(), more.begin(), more.end());
  }
  return batch;
}

TEST(AttentionPlanTest, EveryBlockThatARowSeesIsInOneTask) {
  const std::vector<BatchRow> batch = MixedBatch();
  for (const size_t window : {size_t{0}, size_t{1}, size_t{100}, 2 * kB}) {
    for (const size_t threads : {1, 2, 16}) {
      AttentionPlan plan;
      plan.Make(batch, Shape(threads, window));
      std::map<std::tuple<size_t, size_t, size_t>, int> seen;
      for (const AttentionTask& task : plan.tasks()) {
        for (size_t row = 0; row < task.num_rows; ++row) {
          for (size_t b = task.first_block; b < task.end_block; ++b) {
            ++seen[{task.first_row + row, task.kv_head, b}];
          }
        }
      }
      for (size_t row = 0; row < batch.size(); ++row) {
        const auto [begin, end] = plan.ranges()[row];
        EXPECT_EQ(end, batch[row].position + 1);
        EXPECT_EQ(begin, window == 0 ? 0 : end - std::min(end, window));
        for (size_t kv_head = 0; kv_head < 4; ++kv_head) {
          for (size_t b = begin / kB; b * kB < end; ++b) {
            EXPECT_EQ((seen[{row, kv_head, b}]), 1);
          }
        }
      }
    }
  }
}

TEST(AttentionPlanTest, ATileIsOfOneSequence) {
  const std::vector<BatchRow> batch = MixedBatch();
  AttentionPlan plan;
  plan.Make(batch, Shape(2));
  for (const AttentionTask& task : plan.tasks()) {
    EXPECT_LE(task.num_rows * 8, plan.max_tile_queries());
    for (size_t i = 0; i < task.num_rows; ++i) {
      EXPECT_EQ(batch[task.first_row + i].kv, batch[task.first_row].kv);
    }
  }
}

TEST(AttentionPlanTest, OneLongRowKeepsEveryThreadBusy) {
  AttentionPlan plan;
  plan.Make(Rows(1, 64 * kB - 1, 1), Shape(16));
  EXPECT_GE(plan.tasks().size(), 16u * 8);
}

TEST(AttentionPlanTest, PartialsOfSplitTilesDoNotOverlap) {
  AttentionPlan plan;
  plan.Make(MixedBatch(), Shape(16));
  std::map<size_t, const AttentionTask*> first_of_split;
  std::map<size_t, size_t> count;
  for (const AttentionTask& task : plan.tasks()) {
    if (task.split == kNotSplit) continue;
    first_of_split[task.split] = &task;
    ++count[task.split];
  }
  ASSERT_GT(first_of_split.size(), 1u);
  ASSERT_EQ(first_of_split.size(), plan.split_sizes().size());
  size_t at = 0;
  for (const auto& [split, task] : first_of_split) {
    EXPECT_EQ(task->partials_offset, at);
    EXPECT_EQ(count[split], plan.split_sizes()[split]);
    at += (task->tile_end_block - task->tile_first_block) * task->num_rows * 8 *
          kernels::PartialFloats(128);
  }
  EXPECT_EQ(at, plan.split_floats());
}

// Ten thousand rows on a machine of many cores would want gigabytes.
TEST(AttentionPlanTest, MemoryForPartialsIsBounded) {
  AttentionPlan plan;
  plan.Make(Rows(1, 400 * kB, 100), Shape(256));
  EXPECT_EQ(plan.split_floats(), 0u);
}

TEST(AttentionPlanTest, TheLongestTasksComeFirst) {
  AttentionPlan plan;
  plan.Make(Rows(1, 0, 6 * kB), Shape(2));
  size_t last = static_cast<size_t>(-1);
  for (const AttentionTask& task : plan.tasks()) {
    EXPECT_LE(task.end_block - task.first_block, last);
    last = task.end_block - task.first_block;
  }
}

}  // namespace
}  // namespace muster::runtime

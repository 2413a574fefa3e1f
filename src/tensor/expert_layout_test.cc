#include "tensor/expert_layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

TEST(ExpertLayoutTest, MatricesStandInOrderWithoutOverlap) {
  const ExpertLayout layout =
      LayOutExpert({.type = DType::kQ4_K, .rows = 24, .cols = 256},
                   {.type = DType::kQ4_K, .rows = 24, .cols = 256},
                   {.type = DType::kQ6_K, .rows = 256, .cols = 256});
  EXPECT_EQ(layout.gate.offset, 0u);
  EXPECT_EQ(layout.gate.layout, Layout::kPanels);
  EXPECT_EQ(layout.up.offset, layout.gate.size_bytes());
  EXPECT_EQ(layout.down.offset, layout.up.offset + layout.up.size_bytes());
  EXPECT_GE(layout.size_bytes, layout.down.offset + layout.down.size_bytes());
  EXPECT_EQ(layout.size_bytes % kExpertAlignment, 0u);
  // Two panels of one block of 256 columns, 24 rows being padded to 32.
  EXPECT_EQ(layout.gate.size_bytes(), 2 * PanelBytes(DType::kQ4_K, 256));
}

TEST(ExpertLayoutTest, ScalesOfFp8FollowTheWeights) {
  const MatrixShape fp8{.type = DType::kF8E4M3,
                        .rows = 130,
                        .cols = 256,
                        .scale_tile_rows = 128,
                        .scale_tile_cols = 128};
  const ExpertLayout layout = LayOutExpert(fp8, fp8, fp8);
  EXPECT_EQ(fp8.num_scales(), 4u);
  EXPECT_GE(layout.gate.scales_offset,
            layout.down.offset + layout.down.size_bytes());
  EXPECT_GE(layout.up.scales_offset, layout.gate.scales_offset + 16);
  const std::vector<std::byte> expert(layout.size_bytes);
  const WeightView view = layout.down.ViewIn(expert.data());
  EXPECT_EQ(view.data, expert.data() + layout.down.offset);
  EXPECT_EQ(reinterpret_cast<const std::byte*>(view.scales),
            expert.data() + layout.down.scales_offset);
  EXPECT_EQ(view.scale_tile_rows, 128u);
}

}  // namespace
}  // namespace muster

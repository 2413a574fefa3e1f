#include "experts/expert_copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/dequantize.h"
#include "tensor/aligned_buffer.h"

namespace muster::experts {
namespace {

using testing::HasSubstr;

ExpertLayout Layout(DType type, size_t ff, size_t dim, size_t tile = 0) {
  const auto shape = [&](size_t rows, size_t cols) {
    return MatrixShape{.type = type,
                       .rows = rows,
                       .cols = cols,
                       .scale_tile_rows = tile,
                       .scale_tile_cols = tile};
  };
  return LayOutExpert(shape(ff, dim), shape(ff, dim), shape(dim, ff));
}

// Root of the mean square of the matrix, and of what its copy is off by.
struct Sizes {
  double weights = 0;
  double errors = 0;
};

Sizes Compare(const WeightView& from, const WeightView& copy) {
  EXPECT_EQ(from.rows, copy.rows);
  std::vector<float> a(from.cols), b(from.cols);
  Sizes sizes;
  for (size_t r = 0; r < from.rows; ++r) {
    kernels::DequantizeRow(from, r, a.data());
    kernels::DequantizeRow(copy, r, b.data());
    for (size_t c = 0; c < from.cols; ++c) {
      sizes.weights += std::pow(a[c], 2);
      sizes.errors += std::pow(a[c] - b[c], 2);
    }
  }
  return {std::sqrt(sizes.weights), std::sqrt(sizes.errors)};
}

void ExpectNear(const ExpertLayout& layout, const AlignedBuffer& expert,
                DType type, double share) {
  const auto copy_layout = CopyLayout(layout, type);
  ASSERT_TRUE(copy_layout.ok()) << copy_layout.status().message();
  AlignedBuffer copy(copy_layout->size_bytes);
  std::memset(copy.data(), 0xee, copy.size_bytes());
  MakeCopy(layout, expert.data(), *copy_layout, copy.data());
  const PlacedMatrix* const from[] = {&layout.gate, &layout.up, &layout.down};
  const PlacedMatrix* const to[] = {&copy_layout->gate, &copy_layout->up,
                                    &copy_layout->down};
  for (size_t m = 0; m < 3; ++m) {
    const Sizes sizes =
        Compare(from[m]->ViewIn(expert.data()), to[m]->ViewIn(copy.data()));
    EXPECT_LT(sizes.errors, share * sizes.weights) << "matrix " << m;
  }
}

TEST(ExpertCopyTest, EachMatrixIsNearTheExperts) {
  const ExpertLayout layout = Layout(DType::kF32, 256, 512);
  AlignedBuffer expert(layout.size_bytes);
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 0.05f);
  auto* weights = reinterpret_cast<float*>(expert.data());
  for (size_t i = 0; i < layout.size_bytes / sizeof(float); ++i) {
    weights[i] = normal(random);
  }
  // Of normal weights, the least that 4 and 8 evenly spaced values can err by
  // is 0.34 and 0.19 of their size.
  ExpectNear(layout, expert, DType::kQ2_K, 0.34);
  ExpectNear(layout, expert, DType::kQ3_K, 0.19);
}

TEST(ExpertCopyTest, ScalesOfFp8AreApplied) {
  const ExpertLayout layout = Layout(DType::kF8E4M3, 256, 256, 128);
  AlignedBuffer expert(layout.size_bytes);
  for (size_t i = 0; i < layout.gate.size_bytes() * 3; ++i) {
    expert.data()[i] = static_cast<std::byte>(0x38 + i * 7 % 4 * 0x20);
  }
  for (const PlacedMatrix* m : {&layout.gate, &layout.up, &layout.down}) {
    auto* scales = reinterpret_cast<float*>(expert.data() + m->scales_offset);
    float scale = 0.01f;
    for (size_t s = 0; s < 4; ++s, scale *= 10) scales[s] = scale;
  }
  ExpectNear(layout, expert, DType::kQ3_K, 0.2);
}

TEST(ExpertCopyTest, RowsThatAreNotWholeBlocksAreRefused) {
  const Status status =
      CopyLayout(Layout(DType::kF32, 264, 512), DType::kQ2_K).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("have 264 weights"));
}

TEST(ExpertCopyTest, ACopyThatIsNoSmallerIsRefused) {
  const Status status =
      CopyLayout(Layout(DType::kQ2_K, 256, 512), DType::kQ3_K).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("with fewer bits"));
  EXPECT_TRUE(CopyLayout(Layout(DType::kQ4_K, 256, 512), DType::kQ3_K).ok());
}

}  // namespace
}  // namespace muster::experts

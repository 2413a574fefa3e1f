#include "experts/source_expert.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "kernels/dequantize.h"
#include "kernels/pack_panels.h"
#include "tensor/aligned_buffer.h"

namespace muster::experts {
namespace {

using model::ExpertRefs;
using model::MatrixRef;

// An expert of random bytes in memory that plays the file.
struct Source {
  ExpertRefs refs;
  std::vector<std::byte> file;

  std::array<const std::byte*, kNumParts> Parts() const {
    std::array<const std::byte*, kNumParts> parts{};
    const SourceParts where = PartsOf(refs);
    for (size_t i = 0; i < kNumParts; ++i) {
      if (where[i].size_bytes != 0) parts[i] = file.data() + where[i].offset;
    }
    return parts;
  }
};

Source MakeSource(DType gate, DType down, size_t ff, size_t dim) {
  Source source;
  uint64_t offset = 3;  // files align to nothing that a vector would like
  const auto place = [&](DType type, size_t rows, size_t cols) {
    MatrixRef ref{.type = type, .offset = offset, .rows = rows, .cols = cols};
    offset += ref.size_bytes();
    if (type == DType::kF8E4M3) {
      ref.scales = model::ScaleRef{.type = DType::kBF16,
                                   .offset = offset,
                                   .tile_rows = 16,
                                   .tile_cols = 32};
      offset += (rows + 15) / 16 * ((cols + 31) / 32) * 2;
    }
    return ref;
  };
  source.refs.gate = place(gate, ff, dim);
  source.refs.up = place(gate, ff, dim);
  source.refs.down = place(down, dim, ff);
  source.file.resize(offset);
  std::mt19937 random(7);
  for (std::byte& byte : source.file) byte = static_cast<std::byte>(random());
  return source;
}

// The decoded weights, bit for bit, from the file and from the slot.
void ExpectSameWeights(const Source& source, const MatrixRef& ref,
                       const WeightView& view) {
  std::vector<float> expected(ref.cols), found(ref.cols);
  const size_t row_bytes = SizeBytes(ref.type, ref.cols);
  for (size_t r = 0; r < ref.rows; ++r) {
    kernels::Dequantize(ref.type,
                        source.file.data() + ref.offset + r * row_bytes,
                        ref.cols, expected.data());
    if (view.layout == Layout::kPanels) {
      kernels::DequantizePanelRow(ref.type, view.panel(r / kPanelRows),
                                  r % kPanelRows, ref.cols, found.data());
    } else {
      kernels::Dequantize(ref.type, view.row(r), ref.cols, found.data());
    }
    ASSERT_EQ(std::memcmp(expected.data(), found.data(), ref.cols * 4), 0)
        << Name(ref.type) << " row " << r;
  }
}

struct Types {
  DType gate, down;
};

class SourceExpertTest : public ::testing::TestWithParam<Types> {};

TEST_P(SourceExpertTest, TheSlotHoldsTheWeightsOfTheFile) {
  const Source source = MakeSource(GetParam().gate, GetParam().down, 512, 768);
  const ExpertConverter converter(source.refs);
  AlignedBuffer slot(converter.layout().size_bytes);
  converter.ConvertAll(source.Parts().data(), slot.data());
  const ExpertLayout layout = LayoutOf(source.refs);
  ExpectSameWeights(source, source.refs.gate, layout.gate.ViewIn(slot.data()));
  ExpectSameWeights(source, source.refs.up, layout.up.ViewIn(slot.data()));
  ExpectSameWeights(source, source.refs.down, layout.down.ViewIn(slot.data()));
}

TEST_P(SourceExpertTest, TasksInAnyOrderWriteEveryByteOfTheSlot) {
  const Source source = MakeSource(GetParam().gate, GetParam().down, 512, 768);
  const ExpertConverter converter(source.refs);
  const size_t size_bytes = converter.layout().size_bytes;
  AlignedBuffer forward(size_bytes), backward(size_bytes);
  std::memset(forward.data(), 0x00, size_bytes);
  std::memset(backward.data(), 0xff, size_bytes);
  converter.ConvertAll(source.Parts().data(), forward.data());
  for (size_t task = converter.num_tasks(); task-- > 0;) {
    // A task reads its own part and no other.
    std::array<const std::byte*, kNumParts> only{};
    const size_t part = converter.PartOf(task);
    only[part] = source.Parts()[part];
    converter.Convert(task, only.data(), backward.data());
  }
  EXPECT_EQ(std::memcmp(forward.data(), backward.data(), size_bytes), 0);
}

INSTANTIATE_TEST_SUITE_P(AllKinds, SourceExpertTest,
                         ::testing::Values(Types{DType::kQ4_K, DType::kQ6_K},
                                           Types{DType::kQ3_K, DType::kIQ4_XS},
                                           Types{DType::kQ8_0, DType::kQ8_0},
                                           Types{DType::kBF16, DType::kF16},
                                           Types{DType::kF8E4M3,
                                                 DType::kF8E4M3}));

TEST(SourceExpertTest, ScalesOfFp8BecomeFloats) {
  const Source source = MakeSource(DType::kF8E4M3, DType::kF8E4M3, 40, 96);
  const ExpertConverter converter(source.refs);
  AlignedBuffer slot(converter.layout().size_bytes);
  converter.ConvertAll(source.Parts().data(), slot.data());
  const WeightView down = converter.layout().down.ViewIn(slot.data());
  std::vector<float> expected(converter.layout().down.shape.num_scales());
  ASSERT_EQ(expected.size(), 6u * 2);
  kernels::Dequantize(DType::kBF16, source.Parts()[5], expected.size(),
                      expected.data());
  EXPECT_EQ(std::memcmp(expected.data(), down.scales,
                        expected.size() * sizeof(float)),
            0);
}

// A dense layer and one of experts.
struct TwoLayers {
  TwoLayers() {
    config.layers.resize(2);
    config.layers[1].is_moe = true;
    index.layers.resize(2);
  }
  model::ModelConfig config;
  model::WeightIndex index;
};

TEST(SourceExpertTest, ExpertsOfDifferentTypesInALayerAreRefused) {
  auto [config, index] = TwoLayers();
  const Source a = MakeSource(DType::kQ8_0, DType::kQ8_0, 32, 64);
  const Source b = MakeSource(DType::kQ8_0, DType::kQ4_0, 32, 64);
  index.layers[0].experts = {a.refs};
  index.layers[1].experts = {a.refs, a.refs};
  const auto layouts = LayoutsOf(index, config);
  ASSERT_TRUE(layouts.ok());
  EXPECT_EQ((*layouts)[0].size_bytes, 0u);
  EXPECT_TRUE((*layouts)[1] == LayoutOf(a.refs));
  index.layers[1].experts[1] = b.refs;
  EXPECT_EQ(LayoutsOf(index, config).status().code(), Code::kUnsupported);
}

TEST(SourceExpertTest, ExpertsWhoseScalesDifferInTypeAreRefused) {
  auto [config, index] = TwoLayers();
  const Source fp8 = MakeSource(DType::kF8E4M3, DType::kF8E4M3, 32, 64);
  index.layers[1].experts = {fp8.refs, fp8.refs};
  EXPECT_TRUE(LayoutsOf(index, config).ok());
  index.layers[1].experts[1].up.scales->type = DType::kF32;
  EXPECT_EQ(LayoutsOf(index, config).status().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace muster::experts

#include "kernels/dequantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace muster::kernels {
namespace {

// tests/goldens/dequant holds blocks and what the `gguf` package decodes them
// to; see the README there.
std::vector<std::byte> ReadGolden(const std::string& name) {
  const std::string path =
      std::string(MUSTER_SOURCE_DIR) + "/tests/goldens/" + name;
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  const std::string bytes(std::istreambuf_iterator<char>(in), {});
  std::vector<std::byte> out(bytes.size());
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

std::vector<float> ReadFloats(const std::string& name) {
  const auto bytes = ReadGolden(name);
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

class DequantizeTest : public ::testing::TestWithParam<DType> {};

TEST_P(DequantizeTest, EqualsTheReferenceBitForBit) {
  const DType type = GetParam();
  std::string name(Name(type));
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  const auto blocks = ReadGolden("dequant/" + name + ".blocks.bin");
  const auto expected = ReadFloats("dequant/" + name + ".f32.bin");
  ASSERT_FALSE(expected.empty());
  ASSERT_EQ(SizeBytes(type, expected.size()), blocks.size());
  std::vector<float> actual(expected.size());
  Dequantize(type, blocks.data(), expected.size(), actual.data());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i], expected[i]) << "element " << i;  // -0 equals 0
  }
}

INSTANTIATE_TEST_SUITE_P(
    AllTypes, DequantizeTest,
    ::testing::Values(DType::kF16, DType::kBF16, DType::kQ8_0, DType::kQ4_0,
                      DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ2_K,
                      DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
                      DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4),
    [](const auto& param) { return std::string(Name(param.param)); });

TEST(DequantizeFp8Test, EveryCodeIsTheReferences) {
  const auto expected = ReadFloats("fp8/e4m3.f32.bin");
  ASSERT_EQ(expected.size(), 256u);
  for (size_t code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::byte>(code);
    float actual = 0;
    Dequantize(DType::kF8E4M3, &byte, 1, &actual);
    if (std::isnan(expected[code])) {
      EXPECT_TRUE(std::isnan(actual)) << code;
    } else {
      EXPECT_EQ(actual, expected[code]) << code;
    }
  }
}

TEST(DequantizeFp8Test, TileScalesReachRaggedEdges) {
  const auto codes = ReadGolden("fp8/matrix.codes.bin");
  const auto scales = ReadFloats("fp8/matrix.scales.bin");
  const auto expected = ReadFloats("fp8/matrix.f32.bin");
  const WeightView w{.type = DType::kF8E4M3,
                     .data = codes.data(),
                     .rows = 40,
                     .cols = 72,
                     .scales = scales.data(),
                     .scale_tile_rows = 16,
                     .scale_tile_cols = 16};
  std::vector<float> row(w.cols);
  for (size_t r = 0; r < w.rows; ++r) {
    DequantizeRow(w, r, row.data());
    for (size_t c = 0; c < w.cols; ++c) {
      ASSERT_EQ(row[c], expected[r * w.cols + c]) << r << ", " << c;
    }
  }
}

}  // namespace
}  // namespace muster::kernels

#include "kernels/peak.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "kernels/kernel_test.h"
#include "tensor/aligned_buffer.h"

namespace muster::kernels {
namespace {

// A read that left out a word would give another result.
TEST(PeakTest, EveryWordIsReadOnce) {
  AlignedBuffer buffer(4 * kReadGrain);
  std::vector<uint64_t> words(buffer.size_bytes() / sizeof(uint64_t));
  uint64_t expected = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = (i + 1) * 0x9E3779B97F4A7C15ULL;
    expected ^= words[i];
  }
  std::memcpy(buffer.data(), words.data(), buffer.size_bytes());
  ForEachInstructionSet([&](const std::string&) {
    EXPECT_EQ(ReadAll(buffer.data(), buffer.size_bytes()), expected);
  });
}

TEST(PeakTest, OperationsGrowWithTheRounds) {
  ForEachInstructionSet([&](const std::string&) {
    EXPECT_GT(SpinByteProducts(1), 0u);
    EXPECT_EQ(SpinByteProducts(30), 30 * SpinByteProducts(1));
    EXPECT_EQ(SpinBFloatProducts(30), 30 * SpinBFloatProducts(1));
    EXPECT_EQ(SpinFloatProducts(30), 30 * SpinFloatProducts(1));
  });
}

}  // namespace
}  // namespace muster::kernels

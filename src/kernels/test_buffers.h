// Inputs and outputs for kernel tests: seeded values at any offset from an
// aligned address, guarded against stray writes, and comparison of bits.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "kernels/kernel_test.h"
#include "tensor/aligned_buffer.h"

namespace muster::kernels {

// Half the distance between 1 and the next float: the largest relative error
// of one rounding.
inline constexpr double kUnitRoundoff = 0x1p-24;

// Lengths around every boundary of a kernel that works on 16 lanes, four times.
inline constexpr size_t kLengths[] = {1,   2,   3,   7,   8,   15,  16,   17,
                                      31,  32,  33,  47,  63,  64,  65,   100,
                                      127, 128, 200, 255, 256, 257, 1000, 2048};
// In floats from a 64-byte boundary.
inline constexpr size_t kOffsets[] = {0, 1, 3, 4, 8, 15};

// `size` floats, `offset` floats behind a page boundary, between two guards
// that the destructor checks.
class GuardedFloats {
 public:
  GuardedFloats(size_t size, size_t offset)
      : size_(size),
        offset_(offset),
        buffer_((kGuard + offset + size + kGuard) * sizeof(float)) {
    for (float& f : All()) f = kGuardValue;
  }
  GuardedFloats(const GuardedFloats&) = delete;
  GuardedFloats& operator=(const GuardedFloats&) = delete;
  ~GuardedFloats() {
    const std::span<float> all = All();
    for (size_t i = 0; i < all.size(); ++i) {
      const bool inside = i >= kGuard + offset_ && i < all.size() - kGuard;
      EXPECT_TRUE(inside || all[i] == kGuardValue) << "wrote outside";
    }
  }

  float* data() { return All().data() + kGuard + offset_; }
  std::span<float> span() { return {data(), size_}; }
  float& operator[](size_t i) { return data()[i]; }

 private:
  static constexpr size_t kGuard = 16;
  static constexpr float kGuardValue = -7777.25f;
  std::span<float> All() {
    return {reinterpret_cast<float*>(buffer_.data()),
            kGuard + offset_ + size_ + kGuard};
  }

  size_t size_;
  size_t offset_;
  AlignedBuffer buffer_;
};

inline std::vector<float> NormalFloats(size_t size, uint32_t seed,
                                       float deviation = 1.0f) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> values(size);
  for (float& v : values) v = normal(rng);
  return values;
}

inline std::vector<uint32_t> Bits(std::span<const float> values) {
  std::vector<uint32_t> bits;
  for (const float v : values) bits.push_back(std::bit_cast<uint32_t>(v));
  return bits;
}

// Runs `kernel` with each instruction set that engines use and expects the same
// bits. The baseline is left out: it rounds multiply-adds twice.
inline void ExpectSameBits(const std::function<std::vector<float>()>& kernel) {
  std::vector<uint32_t> expected;
  ForEachInstructionSet([&](const std::string& name) {
    if (name == "baseline") return;
    const std::vector<uint32_t> bits = Bits(kernel());
    if (expected.empty()) expected = bits;
    EXPECT_EQ(bits, expected);
  });
}

}  // namespace muster::kernels

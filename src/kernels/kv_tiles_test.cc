#include "kernels/kv_tiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>

#include "kernels/test_buffers.h"
#include "tensor/float16.h"

namespace muster::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kQ8};
constexpr size_t kSlot = 5;

// What a slot of values holds after storing x in it.
std::vector<float> ThereAndBack(KvType type, const std::vector<float>& x) {
  std::vector<std::byte> tile(KvTileBytes(type, x.size()));
  StoreValue(type, x.data(), x.size(), kSlot, tile.data());
  std::vector<float> out(x.size());
  LoadValue(type, tile.data(), x.size(), kSlot, out.data());
  return out;
}

std::vector<float> ThereAndBackQ8(const std::vector<float>& x) {
  return ThereAndBack(KvType::kQ8, x);
}

TEST(KvTilesTest, FloatsAreKept) {
  const std::vector<float> x = NormalFloats(80, 1);
  EXPECT_EQ(ThereAndBack(KvType::kF32, x), x);
}

TEST(KvTilesTest, HalvesAreRoundedToNearestEvenOnEveryInstructionSet) {
  std::vector<float> x = NormalFloats(1000, 2);
  for (float f = 1e-9f; f < 1e6f; f *= 1.17f) x.push_back(-f);
  x.insert(x.end(), {0.0f, -0.0f, kInfinity, -kInfinity, 65519.9f, 65520.0f,
                     1.0f + 0x1p-11f, 1.0f + 3 * 0x1p-11f, 0x1p-25f, 0x1.8p-25f,
                     std::numeric_limits<float>::denorm_min()});
  ForEachInstructionSet([&](const std::string&) {
    for (const size_t cut : {0, 1, 7, 15}) {
      const std::vector<float> part(x.begin(), x.end() - cut);
      const std::vector<float> stored = ThereAndBack(KvType::kF16, part);
      for (size_t i = 0; i < part.size(); ++i) {
        ASSERT_EQ(stored[i], F16ToF32(F32ToF16(part[i]))) << part[i];
      }
    }
  });
}

TEST(KvTilesTest, KeysAndValuesHoldTheSame) {
  for (const KvType type : kTypes) {
    const std::vector<float> x = NormalFloats(96, 5);
    std::vector<std::byte> tile(KvTileBytes(type, 96));
    StoreKey(type, x.data(), 96, kSlot, tile.data());
    std::vector<float> out(96);
    LoadKey(type, tile.data(), 96, kSlot, out.data());
    EXPECT_EQ(out, ThereAndBack(type, x));
  }
}

// Every slot is stored, twice one of them: the others keep what they hold.
TEST(KvTilesTest, SlotsAreApartAndStayInsideTheTile) {
  constexpr size_t kGuardBytes = 64;
  for (const KvType type : kTypes) {
    for (const size_t dim : {2, 18, 32, 96}) {
      if (type == KvType::kQ8 && dim % 32 != 0) continue;
      for (const auto& [store, load] : {std::pair{&StoreKey, &LoadKey},
                                        std::pair{&StoreValue, &LoadValue}}) {
        const size_t bytes = KvTileBytes(type, dim);
        std::vector<std::byte> tile(bytes + kGuardBytes, std::byte{0x5A});
        const auto x = [&](size_t slot) {
          return NormalFloats(dim, static_cast<uint32_t>(slot));
        };
        for (size_t slot = 0; slot < kKvTilePositions; ++slot) {
          store(type, x(slot).data(), dim, slot, tile.data());
        }
        store(type, x(kSlot).data(), dim, kSlot, tile.data());
        for (size_t slot = 0; slot < kKvTilePositions; ++slot) {
          std::vector<float> out(dim);
          load(type, tile.data(), dim, slot, out.data());
          EXPECT_EQ(out, ThereAndBack(type, x(slot)));
        }
        for (size_t i = bytes; i < tile.size(); ++i) {
          EXPECT_EQ(tile[i], std::byte{0x5A});
        }
      }
    }
  }
}

TEST(KvTilesTest, Q8IsOffByHalfAStepAtMost) {
  for (const float deviation : {1e-3f, 1.0f, 300.0f}) {
    const std::vector<float> x = NormalFloats(256, 3, deviation);
    const std::vector<float> out = ThereAndBackQ8(x);
    for (size_t block = 0; block < 8; ++block) {
      float largest = 0;
      for (size_t i = 0; i < 32; ++i) {
        largest = std::max(largest, std::fabs(x[block * 32 + i]));
      }
      // The step is rounded to half precision, so that 127 steps may miss the
      // largest by 2^-11 of it (2^-25 where halves are subnormal).
      const float tolerance = largest / 127 * (0.5f + 0x1p-10f) +
                              largest * 0x1p-11f + 127 * 0x1p-25f;
      for (size_t i = 0; i < 32; ++i) {
        EXPECT_NEAR(out[block * 32 + i], x[block * 32 + i], tolerance);
      }
    }
  }
}

TEST(KvTilesTest, Q8IsTheSameOnEveryInstructionSet) {
  std::vector<float> x = NormalFloats(512, 4);
  for (size_t i = 0; i < 32; ++i) x[i] *= 1e-7f;
  // Exact halves of a step, where rounding modes would differ.
  for (size_t i = 64; i < 96; ++i) x[i] = static_cast<float>(i) - 79.5f;
  x[64] = 127.0f;
  std::vector<float> expected;
  ForEachInstructionSet([&](const std::string&) {
    const std::vector<float> stored = ThereAndBackQ8(x);
    if (expected.empty()) expected = stored;
    EXPECT_EQ(stored, expected);
  });
  EXPECT_EQ(expected[64 + 1], -14);  // -14.5: to even
  EXPECT_EQ(expected[64 + 2], -14);  // -13.5
}

// The smallest half stands for a scale 1.4 times as large.
TEST(KvTilesTest, Q8DoesNotWrapWhenTheScaleIsRoundedDown) {
  std::vector<float> x(32, 1.4f * 127 * 0x1p-24f);
  x[7] = -x[7];
  const std::vector<float> out = ThereAndBackQ8(x);
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(out[i], (i == 7 ? -127 : 127) * 0x1p-24f);
  }
}

TEST(KvTilesTest, ABlockOfZerosIsZeros) {
  for (const float v : ThereAndBackQ8(std::vector<float>(32, 0.0f))) {
    EXPECT_EQ(v, 0.0f);
  }
}

// A model that makes NaN must give NaN, not undefined behaviour.
TEST(KvTilesTest, Q8KeepsABlockWithoutAScaleVisible) {
  for (const float bad : {kNan, kInfinity, -kInfinity, 3e38f}) {
    std::vector<float> x(64, 1.0f);
    x[5] = bad;
    const std::vector<float> out = ThereAndBackQ8(x);
    EXPECT_TRUE(std::isnan(out[0])) << bad;
    EXPECT_TRUE(std::isnan(out[5])) << bad;
    EXPECT_FALSE(std::isnan(out[32])) << bad;
  }
}

}  // namespace
}  // namespace muster::kernels

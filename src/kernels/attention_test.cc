#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/dequantize.h"
#include "kernels/test_buffers.h"

namespace muster::kernels {
namespace {

constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kQ8};
constexpr size_t kHeadDims[] = {2,  16, 18,  32,  48,  64,
                                80, 96, 100, 112, 128, 256};

bool Stores(KvType type, size_t head_dim) {
  return type != KvType::kQ8 || head_dim % 32 == 0;
}

// A KV head of seeded values, and a query.
class Fixture {
 public:
  Fixture(KvType type, size_t head_dim, size_t num_positions,
          float deviation = 1.0f)
      : q(NormalFloats(head_dim, 1, deviation)),
        scale(1.0f / std::sqrt(static_cast<float>(head_dim))),
        keys_(Store(type, head_dim, num_positions, 2, deviation)),
        values_(Store(type, head_dim, num_positions, 3, 1.0f)),
        kv{.type = type,
           .keys = keys_.data(),
           .values = values_.data(),
           .head_dim = head_dim} {}

  std::vector<float> Attend(size_t begin, size_t end) const {
    std::vector<float> scores(end - begin), out(kv.head_dim);
    AttendHead(q.data(), kv, begin, end, scale, scores.data(), out.data());
    return out;
  }
  std::vector<float> Expected(size_t begin, size_t end) const {
    std::vector<float> out(kv.head_dim);
    AttendHeadReference(q.data(), kv, begin, end, scale, out.data());
    return out;
  }
  // How far an output may be from the definition. A score gathers head_dim / 16
  // fused roundings (two each on the baseline), 4 across lanes, one by scale.
  // Softmax turns its absolute error into a relative one of the weight, twice
  // (term and sum), and adds its own (see elementwise_test.cc). Then one fused
  // rounding a position of a sum that is at most max|v|.
  double Tolerance(size_t begin, size_t end) const {
    const size_t dim = kv.head_dim, n = end - begin;
    double dot = 0, low = 1e300, high = -1e300, largest_v = 0;
    for (size_t p = begin; p < end; ++p) {
      double sum = 0, magnitude = 0;
      const std::vector<float> k = Vector(kv.keys, p);
      for (size_t i = 0; i < dim; ++i) {
        sum += double{q[i]} * k[i];
        magnitude += std::fabs(double{q[i]} * k[i]);
      }
      dot = std::max(dot, magnitude * scale);
      low = std::min(low, sum * scale);
      high = std::max(high, sum * scale);
      for (const float v : Vector(kv.values, p)) {
        largest_v = std::max(largest_v, std::fabs(double{v}));
      }
    }
    const double additions = static_cast<double>(dim) / 16 + 1 + 4 + 1;
    const double lanes = static_cast<double>(n) / 16;
    const double weight = 2 * (additions * dot + (high - low) + 4) + lanes + 6;
    return kUnitRoundoff * largest_v * (weight + static_cast<double>(n) + 2);
  }

  std::vector<float> q;
  float scale;

 private:
  static std::vector<std::byte> Store(KvType type, size_t head_dim, size_t n,
                                      uint32_t seed, float deviation) {
    const size_t bytes = KvVectorBytes(type, head_dim);
    const std::vector<float> x = NormalFloats(n * head_dim, seed, deviation);
    std::vector<std::byte> stored(n * bytes);
    for (size_t p = 0; p < n; ++p) {
      StoreKv(type, x.data() + p * head_dim, head_dim,
              stored.data() + p * bytes);
    }
    return stored;
  }
  std::vector<float> Vector(const std::byte* stored, size_t position) const {
    const DType type = kv.type == KvType::kF32   ? DType::kF32
                       : kv.type == KvType::kF16 ? DType::kF16
                                                 : DType::kQ8_0;
    std::vector<float> out(kv.head_dim);
    Dequantize(type, stored + position * KvVectorBytes(kv.type, kv.head_dim),
               kv.head_dim, out.data());
    return out;
  }

  std::vector<std::byte> keys_, values_;

 public:
  KvHeadView kv;
};

TEST(AttentionTest, AgreesWithTheDefinitionForEveryTypeAndHeadDim) {
  for (const KvType type : kTypes) {
    for (const size_t head_dim : kHeadDims) {
      if (!Stores(type, head_dim)) continue;
      const Fixture fixture(type, head_dim, 70);
      ForEachInstructionSet([&](const std::string&) {
        for (const size_t end : {1, 2, 15, 16, 17, 33, 70}) {
          const std::vector<float> out = fixture.Attend(0, end);
          const std::vector<float> expected = fixture.Expected(0, end);
          const double tolerance = fixture.Tolerance(0, end);
          for (size_t i = 0; i < head_dim; ++i) {
            ASSERT_NEAR(out[i], expected[i], tolerance)
                << "head_dim " << head_dim << " end " << end << " at " << i;
          }
        }
      });
    }
  }
}

TEST(AttentionTest, LongContextsStayWithinTheBound) {
  const Fixture fixture(KvType::kF16, 64, 3000);
  const std::vector<float> out = fixture.Attend(0, 3000);
  const std::vector<float> expected = fixture.Expected(0, 3000);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_NEAR(out[i], expected[i], fixture.Tolerance(0, 3000));
  }
}

// Scores in the thousands: one position takes all.
TEST(AttentionTest, PeakedScoresDoNotOverflow) {
  const Fixture fixture(KvType::kF32, 128, 40, 30.0f);
  const std::vector<float> out = fixture.Attend(0, 40);
  const std::vector<float> expected = fixture.Expected(0, 40);
  for (size_t i = 0; i < 128; ++i) {
    ASSERT_TRUE(std::isfinite(out[i]));
    EXPECT_NEAR(out[i], expected[i], fixture.Tolerance(0, 40));
  }
}

TEST(AttentionTest, AWindowSeesOnlyItsPositions) {
  for (const KvType type : kTypes) {
    const Fixture fixture(type, 64, 50);
    KvHeadView later = fixture.kv;
    const size_t skipped = 13 * KvVectorBytes(type, 64);
    later.keys += skipped;
    later.values += skipped;
    std::vector<float> scores(20), out(64);
    AttendHead(fixture.q.data(), later, 0, 20, fixture.scale, scores.data(),
               out.data());
    EXPECT_EQ(Bits(fixture.Attend(13, 33)), Bits(out));
  }
}

TEST(AttentionTest, OnePositionGivesItsValueExactly) {
  const Fixture fixture(KvType::kF32, 80, 3);
  std::vector<float> value(80);
  std::memcpy(value.data(), fixture.kv.values + 2 * 80 * sizeof(float),
              80 * sizeof(float));
  EXPECT_EQ(fixture.Attend(2, 3), value);
}

TEST(AttentionTest, BitsAreTheSameOnEveryInstructionSet) {
  for (const KvType type : kTypes) {
    for (const size_t head_dim : kHeadDims) {
      if (!Stores(type, head_dim)) continue;
      const Fixture fixture(type, head_dim, 300);
      ExpectSameBits([&] {
        std::vector<float> all;
        for (const size_t end : {1, 5, 16, 31, 128, 300}) {
          const std::vector<float> out = fixture.Attend(0, end);
          all.insert(all.end(), out.begin(), out.end());
        }
        return all;
      });
    }
  }
}

TEST(AttentionTest, BitsDoNotDependOnAlignmentAndNothingElseIsWritten) {
  for (const KvType type : kTypes) {
    const Fixture fixture(type, 96, 37);
    const std::vector<float> expected = fixture.Attend(0, 37);
    for (const size_t offset : kOffsets) {
      GuardedFloats q(96, offset), scores(37, offset / 2), out(96, 15 - offset);
      std::ranges::copy(fixture.q, q.data());
      AttendHead(q.data(), fixture.kv, 0, 37, fixture.scale, scores.data(),
                 out.data());
      EXPECT_EQ(Bits(out.span()), Bits(expected));
    }
  }
}

}  // namespace
}  // namespace muster::kernels

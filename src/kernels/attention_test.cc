#include "kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/test_buffers.h"

namespace muster::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr KvType kTypes[] = {KvType::kF32, KvType::kF16, KvType::kQ8};
constexpr size_t kHeadDims[] = {1,  2,  16,  18,  32,  48, 64,
                                80, 96, 100, 112, 128, 256};
constexpr size_t kB = kAttentionBlock;

bool Stores(KvType type, size_t head_dim) {
  return type != KvType::kQ8 || head_dim % 32 == 0;
}

// The cache of one KV head, with what it holds as floats beside it.
class Cache {
 public:
  Cache(KvType type, size_t head_dim, size_t num_positions,
        float deviation = 1.0f)
      : head_dim_(head_dim),
        type_(type),
        tile_bytes_(KvTileBytes(type, head_dim)),
        keys_(NumTiles(num_positions) * tile_bytes_),
        values_(NumTiles(num_positions) * tile_bytes_) {
    const auto k = NormalFloats(num_positions * head_dim, 2, deviation);
    const auto v = NormalFloats(num_positions * head_dim, 3);
    for (size_t p = 0; p < num_positions; ++p) {
      SetKey(p, {k.data() + p * head_dim, head_dim});
      SetValue(p, {v.data() + p * head_dim, head_dim});
    }
  }

  KvHeadView view() const {
    return {.type = type_,
            .keys = keys_.data(),
            .values = values_.data(),
            .head_dim = head_dim_};
  }
  void SetKey(size_t p, std::span<const float> x) {
    StoreKey(type_, x.data(), head_dim_, p % kKvTilePositions,
             keys_.data() + p / kKvTilePositions * tile_bytes_);
  }
  void SetValue(size_t p, std::span<const float> x) {
    StoreValue(type_, x.data(), head_dim_, p % kKvTilePositions,
               values_.data() + p / kKvTilePositions * tile_bytes_);
  }
  std::vector<float> Key(size_t p) const {
    std::vector<float> out(head_dim_);
    LoadKey(type_, keys_.data() + p / kKvTilePositions * tile_bytes_, head_dim_,
            p % kKvTilePositions, out.data());
    return out;
  }
  std::vector<float> Value(size_t p) const {
    std::vector<float> out(head_dim_);
    LoadValue(type_, values_.data() + p / kKvTilePositions * tile_bytes_,
              head_dim_, p % kKvTilePositions, out.data());
    return out;
  }

 private:
  static size_t NumTiles(size_t positions) {
    return (positions + kKvTilePositions - 1) / kKvTilePositions;
  }

  size_t head_dim_;
  KvType type_;
  size_t tile_bytes_;
  std::vector<std::byte> keys_, values_;
};

// The baseline reads stored halves with Highway's portable conversion, which
// has no infinity and no NaN.
bool KnowsInfinity(const std::string& instruction_set) {
  return instruction_set != "baseline";
}

float Scale(size_t head_dim) {
  return 1.0f / std::sqrt(static_cast<float>(head_dim));
}

// The tiles of a block in those of a whole head.
KvHeadView BlockOf(KvHeadView kv, size_t block) {
  const size_t offset =
      block * (kB / kKvTilePositions) * KvTileBytes(kv.type, kv.head_dim);
  kv.keys += offset;
  kv.values += offset;
  return kv;
}

// All the functions in turn, as a caller uses them.
void Attend(const QueryTile& tile, const KvHeadView& kv, float* out) {
  const size_t floats = tile.num_queries() * PartialFloats(tile.head_dim);
  std::vector<float> packed(tile.num_queries() * tile.head_dim);
  std::vector<float> partials(floats, kNan), states(floats, kNan);
  PackQueries(tile, Scale(tile.head_dim), packed.data());
  ClearStates(tile, states.data());
  const size_t end = tile.ranges[tile.num_rows - 1].end;
  for (size_t block = tile.ranges[0].begin / kB; block * kB < end; ++block) {
    AttendBlock(tile, packed.data(), BlockOf(kv, block), block,
                partials.data());
    MergeBlock(tile, block, partials.data(), states.data());
  }
  FinishStates(tile, states.data(), out);
}

// q: [rows, num_heads, head_dim]
std::vector<float> Attend(std::span<const float> q, size_t num_heads,
                          std::span<const PositionRange> ranges,
                          const Cache& cache) {
  const size_t head_dim = cache.view().head_dim;
  std::vector<float> out(q.size());
  Attend({.q = q.data(),
          .row_stride = num_heads * head_dim,
          .num_heads = num_heads,
          .ranges = ranges.data(),
          .num_rows = ranges.size(),
          .head_dim = head_dim},
         cache.view(), out.data());
  return out;
}

// How far an output may be from the definition. A score gathers a rounding an
// element (two on the baseline) and that of the scaled query. An absolute error
// of a score is a relative one of its weight, in the term and in the sum, and
// so are those of score - max (twice: in a block and between blocks) and of exp
// (2 ulp; in a block, and a merge's two factors and their products). A sum adds
// lanes; then a rounding a position (two on the baseline) of a sum that is at
// most max|v|, the division and the rounding of the definition's result.
double Tolerance(std::span<const float> q, const Cache& cache,
                 PositionRange range) {
  const double dim = static_cast<double>(q.size());
  const double n = static_cast<double>(range.end - range.begin);
  const double blocks = n / kB + 2;
  double dot = 0, low = 1e300, high = -1e300, largest_v = 0;
  for (size_t p = range.begin; p < range.end; ++p) {
    const std::vector<float> key = cache.Key(p);
    double sum = 0, magnitude = 0;
    for (size_t i = 0; i < q.size(); ++i) {
      sum += double{q[i]} * key[i] * Scale(q.size());
      magnitude += std::fabs(double{q[i]} * key[i] * Scale(q.size()));
    }
    dot = std::max(dot, magnitude);
    low = std::min(low, sum);
    high = std::max(high, sum);
    for (const float v : cache.Value(p)) {
      largest_v = std::max(largest_v, std::fabs(double{v}));
    }
  }
  const double weight =
      2 * ((2 * dim + 1) * dot + 2 * (high - low) + 4 + 6 * blocks) + n / 16 +
      6;
  return kUnitRoundoff * largest_v * (weight + 2 * n + 2);
}

void ExpectDefinition(std::span<const float> q, size_t num_heads,
                      std::span<const PositionRange> ranges,
                      const Cache& cache) {
  const size_t dim = cache.view().head_dim;
  struct Expected {
    std::vector<float> out;
    double tolerance;
  };
  std::vector<Expected> expected;
  for (size_t query = 0; query < ranges.size() * num_heads; ++query) {
    const std::span<const float> of_query = q.subspan(query * dim, dim);
    const PositionRange range = ranges[query / num_heads];
    std::vector<float> out(dim);
    AttentionReference(of_query.data(), cache.view(), range, Scale(dim),
                       out.data());
    expected.push_back({out, Tolerance(of_query, cache, range)});
  }
  ForEachInstructionSet([&](const std::string&) {
    const std::vector<float> out = Attend(q, num_heads, ranges, cache);
    for (size_t i = 0; i < out.size(); ++i) {
      ASSERT_NEAR(out[i], expected[i / dim].out[i % dim],
                  expected[i / dim].tolerance)
          << "head_dim " << dim << " heads " << num_heads << " query "
          << i / dim << " at " << i % dim;
    }
  });
}

TEST(AttentionTest, AgreesWithTheDefinitionForEveryTypeAndHeadDim) {
  const PositionRange ranges[] = {{0, 1}, {0, 33}, {0, 70}};
  for (const KvType type : kTypes) {
    for (const size_t head_dim : kHeadDims) {
      if (!Stores(type, head_dim)) continue;
      ExpectDefinition(NormalFloats(3 * head_dim, 1), 1, ranges,
                       Cache(type, head_dim, 70));
    }
  }
}

// Rows whose ends surround every border of lanes, tiles and blocks.
TEST(AttentionTest, AgreesWithTheDefinitionForEveryLength) {
  std::vector<PositionRange> ranges;
  for (const size_t end : std::initializer_list<size_t>{
           1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, kB - 1, kB, kB + 1,
           2 * kB - 1, 2 * kB, 2 * kB + 1, 2 * kB + 100}) {
    ranges.push_back({0, end});
  }
  for (const KvType type : kTypes) {
    ExpectDefinition(NormalFloats(ranges.size() * 2 * 32, 1), 2, ranges,
                     Cache(type, 32, 3 * kB));
  }
}

// Windows that begin and end inside of blocks and at their borders.
TEST(AttentionTest, AgreesWithTheDefinitionForEveryWindow) {
  const PositionRange ranges[] = {
      {0, 20},          {5, 20},          {16, 48},
      {31, 33},         {33, kB - 1},     {kB - 1, kB},
      {kB - 1, kB + 1}, {kB, kB + 1},     {kB + 1, kB + 2},
      {kB + 7, 2 * kB}, {kB + 8, 2 * kB}, {2 * kB - 1, 2 * kB + 40}};
  for (const KvType type : kTypes) {
    ExpectDefinition(NormalFloats(std::size(ranges) * 3 * 64, 1), 3, ranges,
                     Cache(type, 64, 3 * kB));
  }
}

TEST(AttentionTest, AgreesWithTheDefinitionForAnyNumberOfHeadsThatShare) {
  const PositionRange ranges[] = {{0, kB + 3}, {0, kB + 4}, {3, kB + 5}};
  const Cache cache(KvType::kF16, 80, kB + 5);
  for (const size_t heads : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16}) {
    ExpectDefinition(NormalFloats(3 * heads * 80, 1), heads, ranges, cache);
  }
}

TEST(AttentionTest, LongContextsStayWithinTheBound) {
  const PositionRange ranges[] = {{0, 3000}};
  ExpectDefinition(NormalFloats(64, 1), 1, ranges,
                   Cache(KvType::kF16, 64, 3000));
}

// Scores in the thousands: one position takes all.
TEST(AttentionTest, PeakedScoresDoNotOverflow) {
  const Cache cache(KvType::kF32, 128, 2 * kB, 30.0f);
  const PositionRange ranges[] = {{0, 40}, {0, 2 * kB}};
  const std::vector<float> q = NormalFloats(2 * 128, 1, 30.0f);
  for (const float f : Attend(q, 1, ranges, cache)) {
    ASSERT_TRUE(std::isfinite(f));
  }
  ExpectDefinition(q, 1, ranges, cache);
}

TEST(AttentionTest, OnePositionGivesItsValueExactly) {
  for (const KvType type : kTypes) {
    const Cache cache(type, 96, 3);
    const PositionRange ranges[] = {{2, 3}};
    EXPECT_EQ(Attend(NormalFloats(96, 1), 1, ranges, cache), cache.Value(2));
  }
}

TEST(AttentionTest, BitsAreTheSameOnEveryInstructionSet) {
  const PositionRange ranges[] = {{0, 1},  {0, 16},     {0, 31},
                                  {0, kB}, {3, kB + 1}, {20, 3 * kB - 9}};
  for (const KvType type : kTypes) {
    for (const size_t head_dim : kHeadDims) {
      if (!Stores(type, head_dim)) continue;
      const Cache cache(type, head_dim, 3 * kB);
      const std::vector<float> q =
          NormalFloats(std::size(ranges) * 7 * head_dim, 1);
      ExpectSameBits([&] { return Attend(q, 7, ranges, cache); });
    }
  }
}

// A row alone, among rows before it and among rows behind it: the groups of
// queries, and what they share of a block, differ.
TEST(AttentionTest, BitsOfARowDoNotDependOnTheRowsBesideIt) {
  for (const KvType type : kTypes) {
    for (const size_t window : {size_t{0}, size_t{37}, kB}) {
      for (const size_t heads : {1, 3, 8}) {
        const Cache cache(type, 32, 2 * kB);
        const size_t row_floats = heads * 32;
        std::vector<PositionRange> ranges;
        for (size_t end = kB - 9; end < kB + 11; ++end) {
          ranges.push_back(
              {window != 0 ? end - std::min(end, window) : 0, end});
        }
        const std::vector<float> q =
            NormalFloats(ranges.size() * row_floats, 1);
        ForEachInstructionSet([&](const std::string&) {
          const std::vector<float> together = Attend(q, heads, ranges, cache);
          for (size_t row = 0; row < ranges.size(); ++row) {
            const std::vector<float> alone =
                Attend(std::span(q).subspan(row * row_floats, row_floats),
                       heads, std::span(ranges).subspan(row, 1), cache);
            EXPECT_EQ(Bits(alone), Bits(std::span(together).subspan(
                                       row * row_floats, row_floats)))
                << "row " << row << " window " << window << " heads " << heads;
          }
        });
      }
    }
  }
}

// Not even as 0 * NaN.
TEST(AttentionTest, NothingOutsideOfARowsRangeMatters) {
  const PositionRange ranges[] = {{40, kB + 20}, {41, kB + 21}};
  for (const KvType type : kTypes) {
    Cache cache(type, 64, 2 * kB);
    const std::vector<float> q = NormalFloats(2 * 3 * 64, 1);
    const std::vector<float> row(q.begin() + 3 * 64, q.end());
    const std::vector<float> expected =
        Attend(row, 3, std::span(ranges).last(1), cache);
    for (size_t p = 0; p < 2 * kB; ++p) {
      if (p >= 41 && p < kB + 21) continue;
      const std::vector<float> bad(64, p % 2 == 0 ? kNan : kInfinity);
      cache.SetKey(p, bad);
      cache.SetValue(p, bad);
    }
    ForEachInstructionSet([&](const std::string& name) {
      const std::vector<float> out = Attend(q, 3, ranges, cache);
      if (!KnowsInfinity(name)) return;
      EXPECT_TRUE(std::isnan(out[0]));  // the first row sees position 40
      EXPECT_EQ(Bits(std::span(out).subspan(3 * 64)), Bits(expected));
    });
  }
}

// A model that makes NaN or infinity must give NaN or infinity.
TEST(AttentionTest, NanAndInfinityInWhatARowSeesStayVisible) {
  const PositionRange ranges[] = {{0, kB + 20}};
  const auto is_bad = [](float f) { return !std::isfinite(f); };
  for (const KvType type : kTypes) {
    for (const float bad : {kNan, kInfinity}) {
      for (const size_t p : {size_t{0}, size_t{17}, kB - 1, kB, kB + 19}) {
        Cache with_key(type, 64, 2 * kB), with_value(type, 64, 2 * kB);
        std::vector<float> q = NormalFloats(64, 1);
        q[5] = 0.5f;  // times infinity is the largest score
        std::vector<float> x = with_key.Key(p);
        x[5] = bad;
        with_key.SetKey(p, x);
        x = with_value.Value(p);
        x[5] = bad;
        with_value.SetValue(p, x);
        ForEachInstructionSet([&](const std::string& name) {
          if (!KnowsInfinity(name)) return;
          const auto from_key = Attend(q, 1, ranges, with_key);
          EXPECT_TRUE(std::ranges::all_of(from_key, is_bad)) << p;
          EXPECT_TRUE(is_bad(Attend(q, 1, ranges, with_value)[5])) << p;
        });
      }
    }
    std::vector<float> q = NormalFloats(64, 1);
    q[7] = kNan;
    const auto from_query = Attend(q, 1, ranges, Cache(type, 64, 2 * kB));
    EXPECT_TRUE(std::ranges::all_of(from_query, is_bad));
  }
}

// Scores of -infinity have weight 0, were it in a whole block.
TEST(AttentionTest, ABlockWithoutWeightLeavesTheOthers) {
  for (const size_t hidden_block : {0, 1, 2}) {
    Cache cache(KvType::kF32, 16, 3 * kB);
    std::vector<float> q = NormalFloats(16, 1);
    q[3] = 1.0f;
    for (size_t p = hidden_block * kB; p < (hidden_block + 1) * kB; ++p) {
      std::vector<float> key = cache.Key(p);
      key[3] = -kInfinity;
      cache.SetKey(p, key);
    }
    const PositionRange ranges[] = {{0, 3 * kB}};
    std::vector<float> expected(16);
    AttentionReference(q.data(), cache.view(), ranges[0], Scale(16),
                       expected.data());
    const std::vector<float> out = Attend(q, 1, ranges, cache);
    for (size_t i = 0; i < 16; ++i) {
      ASSERT_TRUE(std::isfinite(out[i])) << hidden_block;
      // As in Tolerance, with scores and values below 8.
      EXPECT_NEAR(out[i], expected[i], kUnitRoundoff * 8 * (6 * kB + 1000));
    }
  }
}

TEST(AttentionTest, BitsDoNotDependOnAlignmentAndNothingElseIsWritten) {
  const PositionRange ranges[] = {{0, 36}, {0, 37}};
  for (const KvType type : kTypes) {
    for (const size_t head_dim : {96, 100}) {
      if (!Stores(type, head_dim)) continue;
      const Cache cache(type, head_dim, 37);
      const size_t size = 2 * 3 * head_dim;
      const std::vector<float> values = NormalFloats(size, 1);
      const std::vector<float> expected = Attend(values, 3, ranges, cache);
      for (const size_t offset : kOffsets) {
        GuardedFloats q(size, offset), out(size, 15 - offset);
        std::ranges::copy(values, q.data());
        Attend({.q = q.data(),
                .row_stride = 3 * head_dim,
                .num_heads = 3,
                .ranges = ranges,
                .num_rows = 2,
                .head_dim = head_dim},
               cache.view(), out.data());
        EXPECT_EQ(Bits(out.span()), Bits(expected));
      }
    }
  }
}

}  // namespace
}  // namespace muster::kernels

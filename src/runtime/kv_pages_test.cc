#include "runtime/kv_pages.h"

#include <gtest/gtest.h>

#include <cstring>
#include <utility>

#include "runtime/kv_cache.h"

namespace muster::runtime {
namespace {

model::ModelConfig Config() {
  model::ModelConfig config;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.head_dim = 32;
  config.layers.resize(3);
  return config;
}

TEST(KvPagesTest, APageIsFreeWhenItsLastShareGoes) {
  KvPages pages(Config(), kernels::KvType::kF16, 2);
  EXPECT_EQ(pages.num_free(), 2u);
  {
    KvPage first = *pages.Take();
    EXPECT_FALSE(first.is_shared());
    {
      const KvPage second = first;
      EXPECT_TRUE(first.is_shared());
      EXPECT_EQ(first, second);
    }
    EXPECT_FALSE(first.is_shared());
    const KvPage moved = std::move(first);
    EXPECT_FALSE(moved.is_shared());
    EXPECT_EQ(pages.num_free(), 1u);
  }
  EXPECT_EQ(pages.num_free(), 2u);
}

TEST(KvPagesTest, AssignmentGivesUpWhatWasThere) {
  KvPages pages(Config(), kernels::KvType::kF16, 2);
  KvPage a = *pages.Take();
  const KvPage b = *pages.Take();
  EXPECT_FALSE(a == b);
  a = b;
  EXPECT_EQ(a, b);
  EXPECT_EQ(pages.num_free(), 1u);
}

TEST(KvPagesTest, NoneIsTakenTwice) {
  KvPages pages(Config(), kernels::KvType::kF16, 3);
  const KvPage a = *pages.Take(), b = *pages.Take(), c = *pages.Take();
  EXPECT_FALSE(a == b || b == c || a == c);
  EXPECT_FALSE(pages.Take().has_value());
}

// Every tile of every page, head and layer lies apart from all others.
TEST(KvPagesTest, TilesDoNotOverlap) {
  const model::ModelConfig config = Config();
  KvPages pages(config, kernels::KvType::kF16, 2);
  const KvPage taken[] = {*pages.Take(), *pages.Take()};
  const size_t bytes =
      kKvPagePositions / kernels::kKvTilePositions * pages.tile_bytes();
  const auto for_all = [&](const auto& fn) {
    int number = 1;
    for (const KvPage& page : taken) {
      for (size_t layer = 0; layer < config.layers.size(); ++layer) {
        for (size_t head = 0; head < config.num_kv_heads; ++head) {
          const KvPages::Tiles tiles = pages.TilesOf(page, layer, head);
          fn(tiles.keys, number++);
          fn(tiles.values, number++);
        }
      }
    }
  };
  for_all([&](std::byte* tiles, int n) { std::memset(tiles, n, bytes); });
  for_all([&](std::byte* tiles, int n) {
    EXPECT_EQ(tiles[0], static_cast<std::byte>(n));
    EXPECT_EQ(tiles[bytes - 1], static_cast<std::byte>(n));
  });
  EXPECT_EQ(pages.size_bytes(), 2 * 3 * 2 * 2 * bytes);
}

TEST(KvPagesTest, CopiesWholeTilesAndNoMore) {
  const model::ModelConfig config = Config();
  KvPages pages(config, kernels::KvType::kF16, 2);
  const KvPage from = *pages.Take(), to = *pages.Take();
  const size_t bytes =
      kKvPagePositions / kernels::kKvTilePositions * pages.tile_bytes();
  for (size_t layer = 0; layer < 3; ++layer) {
    for (size_t head = 0; head < 2; ++head) {
      const KvPages::Tiles source = pages.TilesOf(from, layer, head);
      const KvPages::Tiles target = pages.TilesOf(to, layer, head);
      std::memset(source.keys, 1, bytes);
      std::memset(source.values, 2, bytes);
      std::memset(target.keys, 3, bytes);
      std::memset(target.values, 3, bytes);
    }
  }
  pages.CopyPositions(from, 64, to);
  const size_t copied = 2 * pages.tile_bytes();
  for (size_t layer = 0; layer < 3; ++layer) {
    for (size_t head = 0; head < 2; ++head) {
      const KvPages::Tiles target = pages.TilesOf(to, layer, head);
      EXPECT_EQ(target.keys[0], std::byte{1});
      EXPECT_EQ(target.keys[copied - 1], std::byte{1});
      EXPECT_EQ(target.keys[copied], std::byte{3});
      EXPECT_EQ(target.values[copied - 1], std::byte{2});
      EXPECT_EQ(target.values[copied], std::byte{3});
    }
  }
}

TEST(KvCacheTest, TakesPagesAsPositionsAreReservedAndGivesThemBack) {
  KvPages pages(Config(), kernels::KvType::kF16, 3);
  KvCache kv(&pages);
  EXPECT_EQ(kv.capacity(), 0u);
  EXPECT_TRUE(kv.Reserve(1));
  EXPECT_EQ(kv.capacity(), kKvPagePositions);
  EXPECT_TRUE(kv.Reserve(kKvPagePositions));
  EXPECT_EQ(pages.num_free(), 2u);
  EXPECT_TRUE(kv.Reserve(kKvPagePositions + 1));
  EXPECT_EQ(pages.num_free(), 1u);
  EXPECT_FALSE(kv.Reserve(4 * kKvPagePositions));
  EXPECT_EQ(kv.capacity(), 3 * kKvPagePositions);
  kv.Truncate(kKvPagePositions + 1);
  EXPECT_EQ(kv.capacity(), 2 * kKvPagePositions);
  kv.Truncate(0);
  EXPECT_EQ(pages.num_free(), 3u);
}

}  // namespace
}  // namespace muster::runtime

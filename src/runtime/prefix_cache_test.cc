#include "runtime/prefix_cache.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>

namespace muster::runtime {
namespace {

constexpr size_t kPage = kKvPagePositions;
constexpr size_t kBlock = PrefixCache::kBlock;

model::ModelConfig Config() {
  model::ModelConfig config;
  config.num_heads = 1;
  config.num_kv_heads = 1;
  config.head_dim = 32;
  config.layers.resize(1);
  return config;
}

// Tokens first, first + 1, ...
std::vector<int32_t> Count(int32_t first, size_t size) {
  std::vector<int32_t> tokens(size);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

std::vector<int32_t> Join(std::vector<int32_t> a,
                          const std::vector<int32_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class PrefixCacheTest : public ::testing::Test {
 protected:
  // A sequence that has computed the tokens. Its keys say which token stands at
  // which position.
  KvCache Compute(const std::vector<int32_t>& tokens) {
    KvCache kv(&pages_);
    EXPECT_TRUE(kv.Reserve(tokens.size()));
    Store(tokens, 0, &kv);
    return kv;
  }
  void Store(const std::vector<int32_t>& tokens, size_t begin, KvCache* kv) {
    for (size_t p = begin; p < tokens.size(); ++p) {
      const std::vector<float> vector(32, static_cast<float>(tokens[p]));
      kv->Store(0, p, vector.data(), vector.data());
    }
  }
  // What a restored cache holds, as Compute wrote it.
  std::vector<int32_t> Read(const KvCache& kv, size_t size) {
    std::vector<int32_t> tokens;
    for (size_t p = 0; p < size; ++p) {
      const kernels::KvHeadView view = kv.Block(0, 0, p / kPage);
      const size_t tile = p % kPage / kernels::kKvTilePositions;
      float key[32];
      kernels::LoadKey(view.type, view.keys + tile * pages_.tile_bytes(), 32,
                       p % kernels::kKvTilePositions, key);
      tokens.push_back(static_cast<int32_t>(key[0]));
    }
    return tokens;
  }
  void ComputeAndRemember(const std::vector<int32_t>& tokens) {
    KvCache kv = Compute(tokens);
    cache_.Remember(tokens, &kv);
  }
  // Restores, checks what is there and returns how many tokens that is.
  size_t Restored(const std::vector<int32_t>& tokens) {
    KvCache kv(&pages_);
    const size_t size = cache_.Restore(tokens, &kv);
    EXPECT_EQ(Read(kv, size),
              std::vector<int32_t>(tokens.begin(),
                                   tokens.begin() + static_cast<long>(size)));
    return size;
  }

  KvPages pages_{Config(), kernels::KvType::kF32, 8};
  PrefixCache cache_{&pages_};
};

TEST_F(PrefixCacheTest, NothingIsFoundInAnEmptyOne) {
  EXPECT_EQ(cache_.Find(Count(0, 100)), 0u);
  EXPECT_EQ(cache_.Find({}), 0u);
  EXPECT_EQ(Restored(Count(0, 100)), 0u);
}

TEST_F(PrefixCacheTest, WholeBlocksAreFoundAndTheLastTokenIsLeft) {
  ComputeAndRemember(Count(0, 100));
  EXPECT_EQ(cache_.Find(Count(0, 200)), 96u);
  EXPECT_EQ(cache_.Find(Count(0, 97)), 96u);
  EXPECT_EQ(cache_.Find(Count(0, 96)), 64u);
  EXPECT_EQ(cache_.Find(Count(0, kBlock)), 0u);
  EXPECT_EQ(Restored(Count(0, 97)), 96u);
  EXPECT_EQ(Restored(Count(0, 96)), 64u);
}

TEST_F(PrefixCacheTest, OtherTokensAreNotFound) {
  ComputeAndRemember(Count(0, 100));
  EXPECT_EQ(cache_.Find(Count(1, 100)), 0u);
  std::vector<int32_t> differs = Count(0, 100);
  differs[40] = 7;
  EXPECT_EQ(cache_.Find(differs), kBlock);
  EXPECT_EQ(Restored(differs), kBlock);
}

TEST_F(PrefixCacheTest, WholePagesAreSharedAndPartsAreCopied) {
  ComputeAndRemember(Count(0, kPage + 64));
  EXPECT_EQ(pages_.num_free(), 6u);
  KvCache kv(&pages_);
  EXPECT_EQ(cache_.Restore(Count(0, 1000), &kv), kPage + 64);
  EXPECT_EQ(pages_.num_free(), 5u);
  EXPECT_EQ(cache_.NumPagesInUse(Count(0, 1000)), 1u);
  EXPECT_EQ(cache_.num_pages_alone(), 1u);
  // The copy is its own: what it stores behind does not change what is cached.
  Store(Join(Count(0, kPage + 64), Count(5000, 10)), kPage + 64, &kv);
  Store(Join(Count(0, kPage), Count(9000, 64)), kPage, &kv);
  EXPECT_EQ(Restored(Count(0, 1000)), kPage + 64);
}

TEST_F(PrefixCacheTest, TextsThatPartStandSideBySide) {
  const auto first = Join(Count(0, kPage), Count(1000, 70));
  const auto second = Join(Count(0, kPage), Count(2000, 70));
  ComputeAndRemember(first);
  ComputeAndRemember(second);
  EXPECT_EQ(Restored(Join(first, {1, 2})), kPage + 64);
  EXPECT_EQ(Restored(Join(second, {1, 2})), kPage + 64);
  EXPECT_EQ(pages_.num_free(), 5u) << "the common page is kept once";
}

TEST_F(PrefixCacheTest, APageComputedTwiceIsGivenBack) {
  const auto tokens = Count(0, kPage + 1);
  ComputeAndRemember(tokens);
  KvCache twice = Compute(tokens);
  EXPECT_EQ(pages_.num_free(), 5u);
  cache_.Remember(tokens, &twice);
  EXPECT_EQ(pages_.num_free(), 6u);
  EXPECT_EQ(Read(twice, kPage), Count(0, kPage));
}

TEST_F(PrefixCacheTest, AGrowingTextReplacesItsShorterSelf) {
  std::vector<int32_t> tokens = Count(0, 40);
  KvCache kv = Compute(tokens);
  cache_.Remember(tokens, &kv);
  for (const size_t size : {70u, 260u, 300u}) {
    const size_t before = tokens.size();
    tokens = Count(0, size);
    ASSERT_TRUE(kv.Reserve(size));
    Store(tokens, before, &kv);
    cache_.Remember(tokens, &kv);
    EXPECT_EQ(Restored(Count(0, 1000)), size / kBlock * kBlock);
  }
  kv.Truncate(0);
  EXPECT_EQ(cache_.num_pages_alone(), 2u);
  EXPECT_EQ(pages_.num_free(), 6u);
}

TEST_F(PrefixCacheTest, TheOldestLeafGoesFirst) {
  ComputeAndRemember(Count(0, 2 * kPage));                    // two pages
  ComputeAndRemember(Count(5000, kPage));                     // one
  EXPECT_EQ(Restored(Count(0, kPage + 40)), kPage + kBlock);  // used again
  ASSERT_TRUE(cache_.EvictOne());
  EXPECT_EQ(cache_.Find(Count(5000, 1000)), 0u);
  ASSERT_TRUE(cache_.EvictOne());
  EXPECT_EQ(cache_.Find(Count(0, 1000)), kPage) << "the leaf before its parent";
  ASSERT_TRUE(cache_.EvictOne());
  EXPECT_FALSE(cache_.EvictOne());
  EXPECT_EQ(pages_.num_free(), pages_.num_pages());
}

TEST_F(PrefixCacheTest, PagesInUseStay) {
  ComputeAndRemember(Count(0, kPage + 32));
  std::optional<KvCache> kv(&pages_);
  EXPECT_EQ(cache_.Restore(Count(0, kPage + 1), &*kv), kPage);
  EXPECT_TRUE(cache_.EvictOne());
  EXPECT_FALSE(cache_.EvictOne());
  EXPECT_EQ(cache_.Find(Count(0, 1000)), kPage);
  kv.reset();
  EXPECT_TRUE(cache_.EvictOne());
}

TEST_F(PrefixCacheTest, WithoutAFreePageOnlyWholeOnesAreRestored) {
  ComputeAndRemember(Count(0, kPage + 64));
  KvCache rest(&pages_);
  ASSERT_TRUE(rest.Reserve(6 * kPage));
  EXPECT_EQ(Restored(Count(0, 1000)), kPage);
}

}  // namespace
}  // namespace muster::runtime

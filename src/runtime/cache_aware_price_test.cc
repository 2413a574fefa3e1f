// Cache-aware routing as an engine does it, and its price.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/cache_aware_price.h"

namespace muster::runtime {
namespace {

std::unique_ptr<Engine> Load(const RoutingChoice& cache_aware, double share) {
  const auto files = formats::OpenModelFiles(std::string(MUSTER_SOURCE_DIR) +
                                             "/models/demo/demo-moe-q8_0.gguf");
  EXPECT_TRUE(files.ok()) << files.status().message();
  const auto load = [&](uint64_t cache_bytes) {
    auto engine = Engine::Load(*files,
                               {.num_threads = 1,
                                .context_length = 256,
                                .tiers = {.cache_bytes = cache_bytes},
                                .cache_aware = cache_aware},
                               nullptr);
    EXPECT_TRUE(engine.ok()) << engine.status().message();
    return std::move(engine).value();
  };
  auto all = load(uint64_t{1} << 40);
  const uint64_t total = all->model().tiers->table().total_bytes();
  return load(static_cast<uint64_t>(share * static_cast<double>(total)));
}

std::vector<int32_t> Tokens(size_t count) {
  std::vector<int32_t> tokens;
  for (size_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>((i * i * 37 + i * 11) % 500));
  }
  return tokens;
}

CacheAwarePrice Price(Engine& aware, Engine& exact, size_t num_tokens) {
  std::atomic<uint64_t> done{0};
  auto price = PriceCacheAware(aware, exact, Tokens(num_tokens), 32, done);
  EXPECT_TRUE(price.ok()) << price.status().message();
  EXPECT_EQ(done, num_tokens);
  return std::move(price).value();
}

TEST(CacheAwarePriceTest, ExactRoutingBesideItselfCostsNothing) {
  const auto first = Load({}, 0.3);
  const auto second = Load({}, 0.6);
  const CacheAwarePrice price = Price(*first, *second, 40);
  EXPECT_EQ(price.comparison.divergences, std::vector<float>(39, 0.0f));
  EXPECT_EQ(price.same_choices_share(), 1);
  EXPECT_EQ(price.aware.aware_choices, 0u);
}

TEST(CacheAwarePriceTest, HitsRiseAndAgreementFalls) {
  const auto aware = Load(routing::CacheAware{.margin = 0.4f}, 0.3);
  const auto exact = Load({}, 0.3);
  const CacheAwarePrice price = Price(*aware, *exact, 64);
  EXPECT_GT(price.aware.hit_rate(), price.exact.hit_rate());
  EXPECT_LT(price.aware.fetched_bytes, price.exact.fetched_bytes);
  EXPECT_LT(price.same_choices_share(), 1);
  EXPECT_GT(price.same_choices_share(), 0.5);
  EXPECT_GT(price.comparison.mean_divergence(), 0);
  EXPECT_GT(price.aware.replaced_choices, 0u);
  EXPECT_EQ(price.aware.aware_choices, price.num_choices);
  EXPECT_EQ(price.exact.aware_choices, 0u);
}

TEST(CacheAwarePriceTest, WithoutAMarginNothingChanges) {
  const auto aware = Load(routing::CacheAware{.margin = 0}, 1);
  const auto exact = Load({}, 1);
  const CacheAwarePrice price = Price(*aware, *exact, 24);
  EXPECT_EQ(price.comparison.divergences, std::vector<float>(23, 0.0f));
}

TEST(CacheAwarePriceTest, ThePromptIsRoutedExactly) {
  const auto aware = Load(routing::CacheAware{.margin = 1}, 0.3);
  const auto exact = Load({}, 0.3);
  const auto ours = aware->Append(Tokens(40));
  const auto theirs = exact->Append(Tokens(40));
  ASSERT_TRUE(ours.ok() && theirs.ok());
  EXPECT_TRUE(std::ranges::equal(*ours, *theirs));
  EXPECT_EQ(aware->tier_counters().aware_choices, 0u);
}

}  // namespace
}  // namespace muster::runtime

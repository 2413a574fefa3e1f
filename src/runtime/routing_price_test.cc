// Cache-aware routing and low-bit copies as an engine uses them, and their
// price.
#include "runtime/routing_price.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "experts/pack_source.h"
#include "experts/pack_writer.h"

namespace muster::runtime {
namespace {

std::string DemoPath() {
  return std::string(MUSTER_SOURCE_DIR) + "/models/demo/demo-moe-q8_0.gguf";
}

std::unique_ptr<Engine> Load(const RoutingChoice& choice, double share,
                             const std::string& path = DemoPath()) {
  const auto files = formats::OpenModelFiles(path);
  EXPECT_TRUE(files.ok()) << files.status().message();
  const auto load = [&](uint64_t cache_bytes) {
    auto engine = Engine::Load(*files,
                               {.num_threads = 1,
                                .context_length = 256,
                                .tiers = {.cache_bytes = cache_bytes},
                                .routing = choice},
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

RoutingPrice Price(Engine& aware, Engine& exact, size_t num_tokens) {
  std::atomic<uint64_t> done{0};
  auto price = PriceRouting(aware, exact, Tokens(num_tokens), 32, done);
  EXPECT_TRUE(price.ok()) << price.status().message();
  EXPECT_EQ(done, num_tokens);
  return std::move(price).value();
}

TEST(RoutingPriceTest, ExactRoutingBesideItselfCostsNothing) {
  const auto first = Load({}, 0.3);
  const auto second = Load({}, 0.6);
  const RoutingPrice price = Price(*first, *second, 40);
  EXPECT_EQ(price.comparison.divergences, std::vector<float>(39, 0.0f));
  EXPECT_EQ(price.same_choices_share(), 1);
  EXPECT_EQ(price.inexact.aware_choices, 0u);
}

TEST(RoutingPriceTest, HitsRiseAndAgreementFalls) {
  const auto aware =
      Load({.cache_aware = routing::CacheAware{.margin = 0.4f}}, 0.3);
  const auto exact = Load({}, 0.3);
  const RoutingPrice price = Price(*aware, *exact, 64);
  EXPECT_GT(price.inexact.hit_rate(), price.exact.hit_rate());
  EXPECT_LT(price.inexact.fetched_bytes, price.exact.fetched_bytes);
  EXPECT_LT(price.same_choices_share(), 1);
  EXPECT_GT(price.same_choices_share(), 0.5);
  EXPECT_GT(price.comparison.mean_divergence(), 0);
  EXPECT_GT(price.inexact.replaced_choices, 0u);
  EXPECT_EQ(price.inexact.aware_choices, price.num_choices);
  EXPECT_EQ(price.exact.aware_choices, 0u);
}

TEST(RoutingPriceTest, WithoutAMarginNothingChanges) {
  const auto aware = Load({.cache_aware = routing::CacheAware{.margin = 0}}, 1);
  const auto exact = Load({}, 1);
  const RoutingPrice price = Price(*aware, *exact, 24);
  EXPECT_EQ(price.comparison.divergences, std::vector<float>(23, 0.0f));
}

TEST(RoutingPriceTest, ThePromptIsRoutedExactly) {
  const auto aware =
      Load({.cache_aware = routing::CacheAware{.margin = 1}}, 0.3);
  const auto exact = Load({}, 0.3);
  const auto ours = aware->Append(Tokens(40));
  const auto theirs = exact->Append(Tokens(40));
  ASSERT_TRUE(ours.ok() && theirs.ok());
  EXPECT_TRUE(std::ranges::equal(*ours, *theirs));
  EXPECT_EQ(aware->tier_counters().aware_choices, 0u);
}

// The demo model with low-bit copies.
class TailTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto source = experts::PackSource::Open(DemoPath());
    ASSERT_TRUE(source.ok()) << source.status().message();
    std::filesystem::remove_all(Pack());
    const auto written = experts::WritePack(
        **source, experts::OrderByIndex((*source)->config()), Pack(),
        {.num_threads = 2, .copies = DType::kQ2_K}, nullptr);
    ASSERT_TRUE(written.ok()) << written.status().message();
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(Pack()); }
  static std::string Pack() {
    return ::testing::TempDir() + "muster_tail_test.pack";
  }
  static std::unique_ptr<Engine> LoadTail(float weight, double share) {
    return Load({.tail_weight = weight}, share, Pack());
  }
};

TEST_F(TailTest, FewerBytesAreReadAndTheResultIsNear) {
  const auto tail = LoadTail(0.5f, 0.3);
  const auto exact = Load({}, 0.3, Pack());
  const RoutingPrice price = Price(*tail, *exact, 64);
  EXPECT_GT(price.inexact.tail_experts, 0u);
  EXPECT_GT(price.inexact.tail_bytes, 0u);
  EXPECT_LT(price.inexact.fetched_bytes, price.exact.fetched_bytes);
  EXPECT_EQ(price.exact.tail_experts, 0u);
  EXPECT_GT(price.comparison.mean_divergence(), 0);
  EXPECT_LT(price.comparison.mean_divergence(), 0.1);
}

TEST_F(TailTest, CopiesThatNobodyAsksForChangeNoBit) {
  const auto with_copies = Load({}, 0.3, Pack());
  const auto without = Load({}, 0.3);
  const RoutingPrice price = Price(*with_copies, *without, 40);
  EXPECT_EQ(price.comparison.divergences, std::vector<float>(39, 0.0f));
  EXPECT_EQ(price.inexact.tail_experts, 0u);
}

TEST_F(TailTest, AWeightOfNothingChangesNoBit) {
  const auto tail = LoadTail(0, 0.3);
  const auto exact = Load({}, 0.3, Pack());
  const RoutingPrice price = Price(*tail, *exact, 40);
  EXPECT_EQ(price.comparison.divergences, std::vector<float>(39, 0.0f));
  EXPECT_EQ(price.inexact.tail_experts, 0u);
}

TEST_F(TailTest, ThePromptIsExact) {
  const auto tail = LoadTail(1, 0.3);
  const auto exact = Load({}, 0.3, Pack());
  const auto ours = tail->Append(Tokens(40));
  const auto theirs = exact->Append(Tokens(40));
  ASSERT_TRUE(ours.ok() && theirs.ok());
  EXPECT_TRUE(std::ranges::equal(*ours, *theirs));
  EXPECT_EQ(tail->tier_counters().tail_experts, 0u);
}

TEST_F(TailTest, AModelWithoutCopiesIsRefused) {
  const auto files = formats::OpenModelFiles(DemoPath());
  ASSERT_TRUE(files.ok());
  const auto engine =
      Engine::Load(*files, {.routing = {.tail_weight = 0.3f}}, nullptr);
  EXPECT_EQ(engine.status().code(), Code::kInvalidArgument);
  EXPECT_NE(engine.status().message().find("muster pack"), std::string::npos);
}

}  // namespace
}  // namespace muster::runtime

#include "experts/prewarm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

namespace muster::experts {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using State = ExpertCache::State;

constexpr size_t kSmall = kExpertAlignment;
constexpr size_t kLarge = 2 * kExpertAlignment;

// Remembers the order of reads; each ends at once.
class ListingFetcher final : public ExpertFetcher {
 public:
  explicit ListingFetcher(std::vector<uint32_t>* order) : order_(order) {}
  std::string Name() const override { return "listing"; }
  bool CanStart() const override { return flights_.size() < 2; }
  size_t num_in_flight() const override { return flights_.size(); }
  void Start(uint32_t expert, std::byte* /*slot*/) override {
    order_->push_back(expert);
    flights_.push_back({expert, {}});
  }
  void Wait(size_t, ThreadPool&, std::vector<Fetched>* done) override {
    done->insert(done->end(), flights_.begin(), flights_.end());
    flights_.clear();
  }
  FetchCounters counters() const override { return {}; }

 private:
  std::vector<uint32_t>* order_;
  std::vector<Fetched> flights_;
};

class PrewarmTest : public testing::Test {
 protected:
  // Two layers of 4 experts; with `large`, 2 larger ones in a third.
  void Open(uint64_t budget_bytes, const std::string& policy, bool large) {
    std::vector<ExpertTable::Layer> layers = {
        {.num_experts = 4, .top_k = 2, .layout = {.size_bytes = kSmall}},
        {.num_experts = 4, .top_k = 2, .layout = {.size_bytes = kSmall}}};
    if (large) {
      layers.push_back(
          {.num_experts = 2, .top_k = 1, .layout = {.size_bytes = kLarge}});
    }
    auto tiers =
        ExpertTiers::Create(ExpertTable(std::move(layers)),
                            std::make_unique<ListingFetcher>(&order_),
                            {.budget_bytes = budget_bytes, .policy = policy});
    ASSERT_TRUE(tiers.ok()) << tiers.status().message();
    tiers_ = std::move(tiers).value();
  }
  size_t Warm(const std::vector<uint64_t>& uses) {
    return Prewarm(uses, *tiers_, pool_, &progress_);
  }
  void Turn(uint32_t layer, uint32_t id) {
    const uint32_t one_token = 1;
    tiers_->Begin(layer, {&id, 1}, {&one_token, 1});
    ASSERT_TRUE(tiers_->Next(pool_).ok());
    tiers_->End();
  }
  bool IsResident(uint32_t expert) const {
    return tiers_->cache().state(expert) == State::kResident;
  }

  ThreadPool pool_{1};
  PrewarmProgress progress_;
  std::vector<uint32_t> order_;
  std::unique_ptr<ExpertTiers> tiers_;
};

TEST_F(PrewarmTest, TheMostUsedAreReadFirstAndAsManyAsFit) {
  Open(4 * kSmall, "lfru", false);
  EXPECT_EQ(Warm({1, 9, 0, 3, 9, 2, 0, 4}), 4u);
  EXPECT_THAT(order_, ElementsAre(1, 4, 7, 3));
  EXPECT_EQ(progress_.done_bytes, 4 * kSmall);
  EXPECT_EQ(progress_.total_bytes, 4 * kSmall);
  EXPECT_EQ(tiers_->counters().evictions, 0u);
}

TEST_F(PrewarmTest, WhoWasNeverUsedIsNotRead) {
  Open(8 * kSmall, "lfru", false);
  EXPECT_EQ(Warm({0, 1, 0, 0, 0, 2, 0, 0}), 2u);
  EXPECT_THAT(order_, ElementsAre(5, 1));
  order_.clear();
  EXPECT_EQ(Warm(std::vector<uint64_t>(8, 0)), 0u);
  EXPECT_THAT(order_, IsEmpty());
}

TEST_F(PrewarmTest, EachSizeFillsItsOwnRoom) {
  Open(2 * kSmall + kLarge, "lfru", true);
  EXPECT_EQ(Warm({9, 8, 7, 6, 5, 4, 3, 2, 1, 2}), 3u);
  EXPECT_THAT(order_, ElementsAre(0, 1, 9));
}

TEST_F(PrewarmTest, WhoIsThereAlreadyIsLeftInPeace) {
  Open(4 * kSmall, "lfru", false);
  Turn(0, 3);
  order_.clear();
  EXPECT_EQ(Warm({1, 2, 3, 9, 0, 0, 0, 0}), 3u);
  EXPECT_THAT(order_, ElementsAre(2, 1, 0));
}

TEST_F(PrewarmTest, ByAnyPolicyTheMostUsedOutlastsTheOthersAndNewcomers) {
  for (const std::string policy : {"lru", "lfru"}) {
    Open(3 * kSmall, policy, false);
    ASSERT_EQ(Warm({50, 40, 10, 0, 0, 0, 0, 0}), 3u);
    Turn(0, 3);
    EXPECT_FALSE(IsResident(2)) << policy;
    EXPECT_TRUE(IsResident(0)) << policy;
  }
  // A frequency outweighs what was used once, however lately.
  Turn(1, 0);
  EXPECT_TRUE(IsResident(0));
  EXPECT_TRUE(IsResident(1));
}

}  // namespace
}  // namespace muster::experts

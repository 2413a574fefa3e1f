#include "experts/warm_fetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "experts/expert_tiers.h"
#include "io/faulty_read_engine.h"
#include "io/open_read_engine.h"
#include "io/testing_file.h"

namespace muster::experts {
namespace {

using io::ReadFault;
using testing::HasSubstr;

constexpr uint32_t kExperts = 12;
constexpr size_t kExpertBytes = 3 * kExpertAlignment;

std::byte ByteOf(uint32_t expert, size_t i) {
  return static_cast<std::byte>(expert * 31 + i * 7 + i / 256);
}

// Experts one behind the other in one file: aligned and read into their slots,
// or from an odd offset on, in two reads each, and copied.
class FakeStore final : public ExpertStore {
 public:
  FakeStore(std::string path, bool aligned)
      : paths_{std::move(path)}, aligned_(aligned) {}

  static constexpr size_t kOddBegin = 777;

  std::string Name() const override { return "fake"; }
  const std::vector<std::string>& paths() const override { return paths_; }
  bool reads_into_slot() const override { return aligned_; }
  void Reads(uint32_t expert, std::vector<ExpertRead>* reads) const override {
    const uint64_t begin = expert * kExpertBytes;
    if (aligned_) {
      reads->push_back({0, begin, kExpertBytes});
      return;
    }
    reads->push_back({0, kOddBegin + begin, 5000});
    reads->push_back({0, kOddBegin + begin + 5000, kExpertBytes - 5000});
  }
  size_t NumTasks(uint32_t) const override { return aligned_ ? 1 : 2; }
  Status Finish(uint32_t expert, size_t task,
                std::span<const std::byte* const> landed,
                std::byte* slot) const override {
    const size_t begin = task == 0 ? 0 : 5000;
    const size_t end = aligned_ || task == 1 ? kExpertBytes : 5000;
    if (!aligned_) std::memcpy(slot + begin, landed[task], end - begin);
    for (size_t i = begin; i < end; ++i) {
      if (slot[i] != ByteOf(expert, i)) return Corrupt("a wrong byte");
    }
    return {};
  }

 private:
  std::vector<std::string> paths_;
  bool aligned_;
};

class WarmFetcherTest : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    std::vector<std::byte> bytes(GetParam() ? 0 : FakeStore::kOddBegin);
    for (uint32_t expert = 0; expert < kExperts; ++expert) {
      for (size_t i = 0; i < kExpertBytes; ++i) {
        bytes.push_back(ByteOf(expert, i));
      }
    }
    file_.emplace(GetParam() ? "warm_slots" : "warm_converted", bytes);
  }

  void Open(size_t num_slots, io::FaultyOptions faults) {
    auto engine = std::make_unique<io::FaultyReadEngine>(
        io::OpenReadEngine({.depth = 4}).engine, std::move(faults));
    engine_ = engine.get();
    auto fetcher = WarmFetcher::Create(
        std::make_unique<FakeStore>(file_->path(), GetParam()),
        std::move(engine), {.max_in_flight = 3});
    ASSERT_TRUE(fetcher.ok()) << fetcher.status().message();
    const ExpertLayout layout{.size_bytes = kExpertBytes};
    auto tiers = ExpertTiers::Create(
        ExpertTable({{.num_experts = kExperts, .top_k = 2, .layout = layout}}),
        std::move(fetcher).value(), {.budget_bytes = num_slots * kExpertBytes});
    ASSERT_TRUE(tiers.ok()) << tiers.status().message();
    tiers_ = std::move(tiers).value();
  }

  void Begin(uint32_t layer, const std::vector<uint32_t>& ids) {
    tiers_->Begin(layer, ids, std::vector<uint32_t>(ids.size(), 1));
  }
  Status Turn(const std::vector<uint32_t>& ids) {
    Begin(0, ids);
    while (true) {
      ASSIGN_OR_RETURN(const auto positions, tiers_->Next(pool_));
      if (positions.empty()) return {};
      for (const uint32_t position : positions) {
        const uint32_t expert = ids[position];
        const std::byte* slot = tiers_->Weights(0, expert).gate.data;
        for (size_t i = 0; i < kExpertBytes; ++i) {
          EXPECT_EQ(slot[i], ByteOf(expert, i)) << expert << " at " << i;
          if (slot[i] != ByteOf(expert, i)) return Corrupt("see above");
        }
      }
    }
  }

  std::optional<io::TestingFile> file_;
  ThreadPool pool_{2};
  io::FaultyReadEngine* engine_ = nullptr;
  std::unique_ptr<ExpertTiers> tiers_;
};

TEST_P(WarmFetcherTest, EveryExpertComesWholeInAnyOrder) {
  for (const auto order : {io::DoneOrder::kAsTheyEnd, io::DoneOrder::kReversed,
                           io::DoneOrder::kShuffled}) {
    for (const size_t num_slots : {2, 5, 12}) {
      Open(num_slots, {.order = order, .seed = num_slots});
      std::mt19937 random(3);
      for (int turn = 0; turn < 50; ++turn) {
        std::vector<uint32_t> ids;
        for (uint32_t id = 0; id < kExperts; ++id) {
          if (random() % 3 == 0) ids.push_back(id);
        }
        ASSERT_TRUE(Turn(ids).ok());
      }
      EXPECT_EQ(tiers_->counters().failed_reads, 0u);
    }
  }
}

TEST_P(WarmFetcherTest, AnErrorOfTheDiskIsTriedAgain) {
  Open(4, {.faults = {{.nth = 1, .num_times = 1}}});
  ASSERT_TRUE(Turn({0, 1, 2, 3}).ok());
  EXPECT_EQ(tiers_->counters().failed_reads, 1u);
  EXPECT_EQ(engine_->num_faults(), 1u);
}

TEST_P(WarmFetcherTest, ADiskThatStaysIllFailsTheStepWithTheReason) {
  Open(4, {.faults = {{.offset = 5 * kExpertBytes + 8292}}});
  const Status status = Turn({4, 5});
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_THAT(status.message(), HasSubstr("expert 5 of layer 0"));
  EXPECT_THAT(status.message(), HasSubstr("Input/output error"));
  EXPECT_TRUE(Turn({7, 8, 9}).ok());
}

TEST_P(WarmFetcherTest, AShortReadIsNoExpert) {
  Open(4, {.faults = {{.kind = ReadFault::Kind::kShort,
                       .offset = 2 * kExpertBytes + 3000,
                       .keep_bytes = 1024}}});
  const Status status = Turn({2});
  EXPECT_EQ(status.code(), Code::kIoError);
  EXPECT_THAT(status.message(), HasSubstr("the file ends"));
}

TEST_P(WarmFetcherTest, AFlippedBitIsNeverComputedOn) {
  ReadFault fault{.kind = ReadFault::Kind::kFlipByte,
                  .offset = 3 * kExpertBytes + 2000,
                  .num_times = 1,
                  .flip_byte = 1500};
  Open(4, {.faults = {fault}});
  ASSERT_TRUE(Turn({3}).ok());
  EXPECT_EQ(tiers_->counters().checksum_failures, 1u);
  fault.num_times = 100;
  Open(4, {.faults = {fault}});
  EXPECT_EQ(Turn({3}).code(), Code::kCorrupt);
}

TEST_P(WarmFetcherTest, ReadsInFlightEndBeforeTheirMemoryDoes) {
  Open(4, {});
  Begin(0, std::vector<uint32_t>{0, 1, 2});
  tiers_.reset();
}

INSTANTIATE_TEST_SUITE_P(Alignment, WarmFetcherTest, testing::Bool(),
                         [](const auto& param) {
                           return param.param ? "IntoSlots" : "Converted";
                         });

}  // namespace
}  // namespace muster::experts

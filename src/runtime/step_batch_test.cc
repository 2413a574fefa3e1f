#include "runtime/step_batch.h"

#include <gtest/gtest.h>

#include <memory>

namespace muster::runtime {
namespace {

class Deaf : public SequenceListener {
  bool OnToken(int32_t, const TokenChances*) override { return true; }
  void OnFinish(const Finish&) override {}
};

class StepBatchTest : public ::testing::Test {
 protected:
  // A sequence of which so many tokens are computed.
  ScheduledSequence* Add(size_t prompt_size, size_t num_computed,
                         std::optional<size_t> prompt_chances = {}) {
    SequenceRequest request;
    for (size_t i = 0; i < prompt_size; ++i) {
      request.prompt.push_back(static_cast<int32_t>(100 * owned_.size() + i));
    }
    request.prompt_chances = prompt_chances;
    owned_.push_back(std::make_unique<ScheduledSequence>(
        owned_.size(), std::move(request), &listener_, &pages_));
    owned_.back()->num_computed = num_computed;
    sequences_.push_back(owned_.back().get());
    return sequences_.back();
  }
  // How many tokens of each sequence.
  std::vector<size_t> Choose(const StepLimits& limits) {
    std::vector<size_t> counts(owned_.size());
    for (const StepPart& part : ChooseParts(sequences_, limits)) {
      counts[part.sequence->id] += part.num_tokens;
    }
    return counts;
  }

  static model::ModelConfig Config() {
    model::ModelConfig config;
    config.num_kv_heads = 1;
    config.head_dim = 32;
    config.layers.resize(1);
    return config;
  }
  Deaf listener_;
  KvPages pages_{Config(), kernels::KvType::kF16, 4};
  std::vector<std::unique_ptr<ScheduledSequence>> owned_;
  std::vector<ScheduledSequence*> sequences_;
};

using Counts = std::vector<size_t>;

TEST_F(StepBatchTest, APromptAloneFillsTheStep) {
  Add(100, 0);
  EXPECT_EQ(Choose({64, 16, 8}), Counts{64});
  owned_[0]->num_computed = 64;
  EXPECT_EQ(Choose({64, 16, 8}), Counts{36});
}

TEST_F(StepBatchTest, AnswersComeFirstAndPromptsShareWhatIsLeft) {
  Add(100, 0);
  Add(10, 9);
  Add(100, 0);
  EXPECT_EQ(Choose({64, 16, 8}), (Counts{16, 1, 0}));
  EXPECT_EQ(Choose({64, 63, 8}), (Counts{63, 1, 0}));
  EXPECT_EQ(Choose({256, 150, 8}), (Counts{100, 1, 50}));
}

TEST_F(StepBatchTest, NoMoreLogitsThanThereIsRoomFor) {
  Add(50, 0, 3);
  EXPECT_EQ(Choose({64, 16, 8}), Counts{8});
  owned_[0]->num_told_prompt_chances = 40;  // after a pre-emption
  EXPECT_EQ(Choose({64, 16, 8}), Counts{48});
  Add(10, 9);
  EXPECT_EQ(Choose({64, 16, 8}), (Counts{16, 1}));
}

TEST_F(StepBatchTest, RowsAreTheNextTokensWithTheirPositions) {
  Add(3, 1);
  ScheduledSequence* second = Add(5, 4);
  const std::vector<StepPart> parts = {{sequences_[0], 2}, {second, 1}};
  const std::vector<BatchRow> rows = RowsOf(parts);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].token, 1);
  EXPECT_EQ(rows[0].position, 1u);
  EXPECT_FALSE(rows[0].wants_logits);
  EXPECT_EQ(rows[1].token, 2);
  EXPECT_TRUE(rows[1].wants_logits);
  EXPECT_EQ(rows[2].token, 104);
  EXPECT_EQ(rows[2].position, 4u);
  EXPECT_EQ(rows[2].kv, &second->kv);
  EXPECT_TRUE(rows[2].wants_logits);
}

}  // namespace
}  // namespace muster::runtime

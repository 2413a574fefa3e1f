#include <cmath>
#include <vector>

#include "experts/expert_heap.h"
#include "experts/policies.h"

namespace muster::experts {
namespace {

struct History {
  double score = 0;
  uint64_t last_use = 0;  // counts uses
};

struct LessUsed {
  const std::vector<History>* of;

  bool operator()(uint32_t a, uint32_t b) const {
    const History& left = (*of)[a];
    const History& right = (*of)[b];
    if (left.score != right.score) return left.score < right.score;
    return left.last_use < right.last_use;
  }
};

// All frequencies fade alike, so that their order changes only with a use.
// Instead of fading them, each step's uses weigh more than those of the one
// before; scores are frequencies times the weight of now.
class Lfru final : public EvictionPolicy {
 public:
  explicit Lfru(const PolicyShape& shape)
      : history_(shape.num_experts),
        residents_(shape.num_experts, {&history_}) {}

  void BeginLayer(uint32_t layer) override {
    if (layer <= layer_) BeginStep();
    layer_ = layer;
  }

  void Insert(uint32_t expert, uint32_t num_tokens) override {
    Count(expert, num_tokens);
    residents_.Insert(expert);
  }

  void Use(uint32_t expert, uint32_t num_tokens) override {
    Count(expert, num_tokens);
    residents_.Moved(expert);
  }

  void Remove(uint32_t expert) override { residents_.Remove(expert); }

  uint32_t Victim(std::span<const uint32_t> pins) const override {
    return residents_.First(pins);
  }

 private:
  void BeginStep() {
    weight_ *= growth_;
    if (weight_ < 0x1p500) return;
    weight_ *= 0x1p-500;
    for (History& history : history_) history.score *= 0x1p-500;
  }

  void Count(uint32_t expert, uint32_t num_tokens) {
    history_[expert].score += weight_ * num_tokens;
    history_[expert].last_use = ++num_uses_;
  }

  const double growth_ = std::exp2(1 / kLfruHalfLife);  // of weight_, a step
  double weight_ = 1;
  uint32_t layer_ = 0;
  uint64_t num_uses_ = 0;
  std::vector<History> history_;  // [num_experts]
  ExpertHeap<LessUsed> residents_;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeLfru(const PolicyShape& shape) {
  return std::make_unique<Lfru>(shape);
}

}  // namespace muster::experts

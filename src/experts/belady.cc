#include <limits>

#include "base/check.h"
#include "experts/expert_heap.h"
#include "experts/replay.h"

namespace muster::experts {
namespace {

constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

struct LaterUsed {
  const std::vector<uint64_t>* next_use;

  bool operator()(uint32_t a, uint32_t b) const {
    const uint64_t left = (*next_use)[a], right = (*next_use)[b];
    return left != right ? left > right : a < b;
  }
};

class Belady final : public EvictionPolicy {
 public:
  explicit Belady(const Replay& replay)
      : next_use_(replay.num_experts_in_all(), kNever),
        use_after_(replay.experts.size(), kNever),
        residents_(replay.num_experts_in_all(), {&next_use_}) {
    for (size_t use = replay.experts.size(); use-- > 0;) {
      const uint32_t expert = replay.experts[use];
      use_after_[use] = next_use_[expert];
      next_use_[expert] = use;
    }
  }

  void BeginLayer(uint32_t /*layer*/) override {}

  void Insert(uint32_t expert, uint32_t /*num_tokens*/) override {
    Advance(expert);
    residents_.Insert(expert);
  }

  void Use(uint32_t expert, uint32_t /*num_tokens*/) override {
    Advance(expert);
    residents_.Moved(expert);
  }

  void Remove(uint32_t expert) override { residents_.Remove(expert); }

  uint32_t Victim(std::span<const uint32_t> pins) const override {
    return residents_.First(pins);
  }

 private:
  // The use that was awaited is now.
  void Advance(uint32_t expert) {
    CHECK(next_use_[expert] != kNever);
    next_use_[expert] = use_after_[next_use_[expert]];
  }

  // Uses are numbered by their place in Replay::experts.
  std::vector<uint64_t> next_use_;   // [num_experts]
  std::vector<uint64_t> use_after_;  // [uses] the same expert's next one
  ExpertHeap<LaterUsed> residents_;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeBelady(const Replay& replay) {
  return std::make_unique<Belady>(replay);
}

}  // namespace muster::experts

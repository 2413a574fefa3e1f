#include "experts/policies.h"
#include "experts/recency_lists.h"

namespace muster::experts {
namespace {

class Lru final : public EvictionPolicy {
 public:
  explicit Lru(const PolicyShape& shape) : residents_(1, shape.num_experts) {}

  void BeginLayer(uint32_t /*layer*/) override {}
  void Insert(uint32_t expert, uint32_t /*num_tokens*/) override {
    residents_.Append(0, expert);
  }
  void Remove(uint32_t expert) override { residents_.Remove(expert); }

  void Use(uint32_t expert, uint32_t /*num_tokens*/) override {
    residents_.Remove(expert);
    residents_.Append(0, expert);
  }

  uint32_t Victim(std::span<const uint32_t> pins) const override {
    uint32_t expert = residents_.Oldest(0);
    while (expert != kNoExpert && pins[expert] != 0) {
      expert = residents_.Newer(expert);
    }
    return expert;
  }

 private:
  RecencyLists residents_;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeLru(const PolicyShape& shape) {
  return std::make_unique<Lru>(shape);
}

}  // namespace muster::experts

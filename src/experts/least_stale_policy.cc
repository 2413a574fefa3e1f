#include <vector>

#include "experts/policies.h"
#include "experts/recency_lists.h"

namespace muster::experts {
namespace {

class LeastStale final : public EvictionPolicy {
 public:
  explicit LeastStale(const PolicyShape& shape)
      : num_layers_(shape.num_layers),
        layer_of_(shape.layer_of.begin(), shape.layer_of.end()),
        residents_(shape.num_layers, shape.num_experts),
        last_use_(shape.num_experts) {}

  void BeginLayer(uint32_t layer) override { layer_ = layer; }

  void Insert(uint32_t expert, uint32_t /*num_tokens*/) override {
    residents_.Append(layer_of_[expert], expert);
    last_use_[expert] = ++num_uses_;
  }

  void Use(uint32_t expert, uint32_t num_tokens) override {
    residents_.Remove(expert);
    Insert(expert, num_tokens);
  }

  void Remove(uint32_t expert) override { residents_.Remove(expert); }

  uint32_t Victim(std::span<const uint32_t> pins) const override {
    const uint32_t passed = OldestFree(0, layer_, pins);
    return passed != kNoExpert ? passed : OldestFree(layer_, num_layers_, pins);
  }

 private:
  // In layers [begin, end).
  uint32_t OldestFree(uint32_t begin, uint32_t end,
                      std::span<const uint32_t> pins) const {
    uint32_t oldest = kNoExpert;
    for (uint32_t layer = begin; layer < end; ++layer) {
      uint32_t expert = residents_.Oldest(layer);
      while (expert != kNoExpert && pins[expert] != 0) {
        expert = residents_.Newer(expert);
      }
      if (expert == kNoExpert) continue;
      if (oldest == kNoExpert || last_use_[expert] < last_use_[oldest]) {
        oldest = expert;
      }
    }
    return oldest;
  }

  const uint32_t num_layers_;
  const std::vector<uint32_t> layer_of_;  // [num_experts]
  RecencyLists residents_;                // a list for each layer
  std::vector<uint64_t> last_use_;        // [num_experts]
  uint64_t num_uses_ = 0;
  uint32_t layer_ = 0;
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeLeastStale(const PolicyShape& shape) {
  return std::make_unique<LeastStale>(shape);
}

}  // namespace muster::experts

#include <cmath>
#include <vector>

#include "base/check.h"
#include "experts/policies.h"

namespace muster::experts {
namespace {

constexpr uint32_t kNowhere = kNoExpert;

// All frequencies fade alike, so that their order changes only with a use.
// Instead of fading them, each step's uses weigh more than those of the one
// before; scores are frequencies times the weight of now.
class Lfru final : public EvictionPolicy {
 public:
  explicit Lfru(const PolicyShape& shape)
      : score_(shape.num_experts),
        last_use_(shape.num_experts),
        place_(shape.num_experts, kNowhere) {
    heap_.reserve(shape.num_experts);
  }

  void BeginLayer(uint32_t layer) override {
    if (layer <= layer_) BeginStep();
    layer_ = layer;
  }

  void Insert(uint32_t expert) override {
    CHECK(place_[expert] == kNowhere);
    Count(expert);
    heap_.push_back(expert);
    MoveUp(heap_.size() - 1);
  }

  void Use(uint32_t expert) override {
    CHECK(place_[expert] != kNowhere);
    Count(expert);
    MoveDown(place_[expert]);
  }

  void Remove(uint32_t expert) override {
    const size_t hole = place_[expert];
    CHECK(hole != kNowhere);
    const uint32_t last = heap_.back();
    heap_.pop_back();
    place_[expert] = kNowhere;
    if (last == expert) return;
    Put(last, hole);
    MoveUp(hole);
    MoveDown(place_[last]);
  }

  uint32_t Victim(std::span<const uint32_t> pins) const override {
    return LowestFree(0, pins);
  }

 private:
  void BeginStep() {
    weight_ *= growth_;
    if (weight_ < 0x1p500) return;
    weight_ *= 0x1p-500;
    for (double& score : score_) score *= 0x1p-500;
  }

  void Count(uint32_t expert) {
    score_[expert] += weight_;
    last_use_[expert] = ++num_uses_;
  }

  bool Before(uint32_t a, uint32_t b) const {
    if (score_[a] != score_[b]) return score_[a] < score_[b];
    return last_use_[a] < last_use_[b];
  }

  // Below a free expert there is no better one, so only pinned ones are passed.
  uint32_t LowestFree(size_t at, std::span<const uint32_t> pins) const {
    if (at >= heap_.size()) return kNoExpert;
    if (pins[heap_[at]] == 0) return heap_[at];
    const uint32_t left = LowestFree(2 * at + 1, pins);
    const uint32_t right = LowestFree(2 * at + 2, pins);
    if (left == kNoExpert) return right;
    if (right == kNoExpert) return left;
    return Before(left, right) ? left : right;
  }

  void Put(uint32_t expert, size_t at) {
    heap_[at] = expert;
    place_[expert] = static_cast<uint32_t>(at);
  }

  void MoveUp(size_t at) {
    const uint32_t expert = heap_[at];
    while (at > 0 && Before(expert, heap_[(at - 1) / 2])) {
      Put(heap_[(at - 1) / 2], at);
      at = (at - 1) / 2;
    }
    Put(expert, at);
  }

  void MoveDown(size_t at) {
    const uint32_t expert = heap_[at];
    while (2 * at + 1 < heap_.size()) {
      size_t child = 2 * at + 1;
      if (child + 1 < heap_.size() && Before(heap_[child + 1], heap_[child])) {
        ++child;
      }
      if (!Before(heap_[child], expert)) break;
      Put(heap_[child], at);
      at = child;
    }
    Put(expert, at);
  }

  const double growth_ = std::exp2(1 / kLfruHalfLife);  // of weight_, a step
  double weight_ = 1;
  uint32_t layer_ = 0;
  uint64_t num_uses_ = 0;
  std::vector<double> score_;       // [num_experts]
  std::vector<uint64_t> last_use_;  // [num_experts]
  std::vector<uint32_t> heap_;      // residents, the first to go on top
  std::vector<uint32_t> place_;     // [num_experts] in heap_, or kNowhere
};

}  // namespace

std::unique_ptr<EvictionPolicy> MakeLfru(const PolicyShape& shape) {
  return std::make_unique<Lfru>(shape);
}

}  // namespace muster::experts

// Residents in the order in which a policy gives them up: a binary heap that
// knows where each expert stands in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "experts/eviction_policy.h"

namespace muster::experts {

// Before(a, b): does `a` go before `b`? A strict order, which changes only for
// an expert that Moved is called for next. One thread at a time.
template <class Before>
class ExpertHeap {
 public:
  ExpertHeap(uint32_t num_experts, Before before)
      : before_(before), place_(num_experts, kNowhere) {
    heap_.reserve(num_experts);
  }

  // O(log residents), as the next two. REQUIRES: it is not here.
  void Insert(uint32_t expert) {
    CHECK(place_[expert] == kNowhere);
    place_[expert] = static_cast<uint32_t>(heap_.size());
    heap_.push_back(expert);
    MoveUp(heap_.size() - 1);
  }

  // REQUIRES: it is here.
  void Moved(uint32_t expert) {
    CHECK(place_[expert] != kNowhere);
    MoveUp(place_[expert]);
    MoveDown(place_[expert]);
  }

  // REQUIRES: it is here.
  void Remove(uint32_t expert) {
    const size_t hole = place_[expert];
    CHECK(hole != kNowhere);
    const uint32_t last = heap_.back();
    heap_.pop_back();
    place_[expert] = kNowhere;
    if (last == expert) return;
    Put(last, hole);
    Moved(last);
  }

  // The first that is not pinned; kNoExpert: there is none. Passes only the
  // pinned ones before it and their children.
  uint32_t First(std::span<const uint32_t> pins) const {
    return FirstBelow(0, pins);
  }

 private:
  static constexpr uint32_t kNowhere = kNoExpert;

  uint32_t FirstBelow(size_t at, std::span<const uint32_t> pins) const {
    if (at >= heap_.size()) return kNoExpert;
    if (pins[heap_[at]] == 0) return heap_[at];
    const uint32_t left = FirstBelow(2 * at + 1, pins);
    const uint32_t right = FirstBelow(2 * at + 2, pins);
    if (left == kNoExpert) return right;
    if (right == kNoExpert) return left;
    return before_(left, right) ? left : right;
  }

  void Put(uint32_t expert, size_t at) {
    heap_[at] = expert;
    place_[expert] = static_cast<uint32_t>(at);
  }

  void MoveUp(size_t at) {
    const uint32_t expert = heap_[at];
    while (at > 0 && before_(expert, heap_[(at - 1) / 2])) {
      Put(heap_[(at - 1) / 2], at);
      at = (at - 1) / 2;
    }
    Put(expert, at);
  }

  void MoveDown(size_t at) {
    const uint32_t expert = heap_[at];
    while (2 * at + 1 < heap_.size()) {
      size_t child = 2 * at + 1;
      if (child + 1 < heap_.size() && before_(heap_[child + 1], heap_[child])) {
        ++child;
      }
      if (!before_(heap_[child], expert)) break;
      Put(heap_[child], at);
      at = child;
    }
    Put(expert, at);
  }

  Before before_;
  std::vector<uint32_t> heap_;   // the first to go on top
  std::vector<uint32_t> place_;  // [num_experts] in heap_, or kNowhere
};

}  // namespace muster::experts

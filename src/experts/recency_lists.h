// Doubly linked lists of experts, each from the one used longest ago to the one
// used last: the links lie in two arrays, so that nothing is ever allocated.
#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"
#include "experts/eviction_policy.h"

namespace muster::experts {

// An expert is in one list or in none. All operations are O(1).
// One thread at a time.
class RecencyLists {
 public:
  RecencyLists(uint32_t num_lists, uint32_t num_experts)
      : num_experts_(num_experts),
        older_(size_t{num_experts} + num_lists, kNoExpert),
        newer_(older_) {
    for (uint32_t list = 0; list < num_lists; ++list) {
      older_[End(list)] = newer_[End(list)] = End(list);
    }
  }

  bool Contains(uint32_t expert) const { return newer_[expert] != kNoExpert; }

  // Puts it at the new end. REQUIRES: it is in no list.
  void Append(uint32_t list, uint32_t expert) {
    CHECK_LT(expert, num_experts_);
    CHECK(!Contains(expert));
    const uint32_t end = End(list);
    Link(older_[end], expert);
    Link(expert, end);
  }

  // REQUIRES: it is in a list.
  void Remove(uint32_t expert) {
    CHECK_LT(expert, num_experts_);
    CHECK(Contains(expert));
    Link(older_[expert], newer_[expert]);
    older_[expert] = newer_[expert] = kNoExpert;
  }

  // kNoExpert: the list is empty.
  uint32_t Oldest(uint32_t list) const { return OrNone(newer_[End(list)]); }
  // The next one in its list. kNoExpert: it was the newest.
  uint32_t Newer(uint32_t expert) const { return OrNone(newer_[expert]); }

 private:
  // Each list is a ring through a place of its own behind the experts.
  uint32_t End(uint32_t list) const { return num_experts_ + list; }
  uint32_t OrNone(uint32_t place) const {
    return place < num_experts_ ? place : kNoExpert;
  }
  void Link(uint32_t older, uint32_t newer) {
    newer_[older] = newer;
    older_[newer] = older;
  }

  uint32_t num_experts_;
  std::vector<uint32_t> older_;  // [num_experts + num_lists]
  std::vector<uint32_t> newer_;  // likewise
};

}  // namespace muster::experts

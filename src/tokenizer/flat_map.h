// A hash map of 64-bit numbers that is filled once and then read very often:
// one array, no pointers, linear probing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace muster::tokenizer {

class FlatMap {
 public:
  static constexpr uint64_t kNoKey = ~uint64_t{0};

  FlatMap() : FlatMap(0) {}
  // Takes up to `capacity` entries.
  explicit FlatMap(size_t capacity)
      : capacity_(capacity),
        slots_(std::bit_ceil(2 * capacity + 2)),
        shift_(64 - std::countr_zero(slots_.size())) {}

  // The first value of a key stays. REQUIRES: key != kNoKey, room is left.
  void Insert(uint64_t key, uint64_t value) {
    CHECK(key != kNoKey);
    Slot& slot = slots_[SlotOf(key)];
    if (slot.key == key) return;
    CHECK_LT(size_, capacity_);
    ++size_;
    slot = {.key = key, .value = value};
  }

  // nullptr: no such key.
  const uint64_t* Find(uint64_t key) const {
    const Slot& slot = slots_[SlotOf(key)];
    return slot.key == kNoKey ? nullptr : &slot.value;
  }

 private:
  struct Slot {
    uint64_t key = kNoKey;
    uint64_t value = 0;
  };

  // Where `key` is or would go.
  size_t SlotOf(uint64_t key) const {
    const size_t mask = slots_.size() - 1;
    // Fibonacci hashing: the high bits of the product are the mixed ones.
    size_t at = static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> shift_);
    while (slots_[at].key != key && slots_[at].key != kNoKey) {
      at = (at + 1) & mask;
    }
    return at;
  }

  size_t capacity_;
  size_t size_ = 0;
  std::vector<Slot> slots_;
  int shift_;
};

}  // namespace muster::tokenizer

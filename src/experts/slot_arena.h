// Memory for resident experts of one size: slots in huge pages, as many as the
// budget allows at the moment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::experts {

// Addresses for `max_slots` are reserved once; memory is taken as slots are
// first written, and given back when the capacity shrinks. One thread at a
// time, but for Populate.
class SlotArena {
 public:
  // Throws std::bad_alloc when there are no addresses.
  // REQUIRES: slot_bytes is a multiple of a page.
  SlotArena(size_t slot_bytes, size_t max_slots);
  ~SlotArena();
  SlotArena(SlotArena&& other) noexcept;
  SlotArena& operator=(SlotArena&&) = delete;

  size_t slot_bytes() const { return slot_bytes_; }
  size_t max_slots() const { return max_slots_; }
  // Aligned to a page.
  std::byte* slot(size_t i) { return begin_ + i * slot_bytes_; }

  // Gives the memory of slots [first, max_slots) back to the system; they read
  // as zeros until they are written again.
  void Discard(size_t first);
  // The same of one slot.
  void DiscardSlot(size_t i);
  // Takes the slot's memory now; what is in it stays as it is, so that others
  // may read and write it meanwhile. False where the system refuses: then it is
  // taken when the slot is written.
  bool Populate(size_t i);

 private:
  size_t slot_bytes_;
  size_t max_slots_;
  size_t mapped_bytes_ = 0;
  std::byte* mapping_ = nullptr;
  std::byte* begin_ = nullptr;  // mapping_, aligned to a huge page
};

}  // namespace muster::experts

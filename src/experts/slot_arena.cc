#include "experts/slot_arena.h"

#include <sys/mman.h>

#include <cstdint>
#include <new>
#include <utility>

#include "base/check.h"

namespace muster::experts {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;

}  // namespace

SlotArena::SlotArena(size_t slot_bytes, size_t max_slots)
    : slot_bytes_(slot_bytes), max_slots_(max_slots) {
  CHECK_EQ(slot_bytes % kPageBytes, 0u);
  mapped_bytes_ = slot_bytes * max_slots + kHugePageBytes;
  void* mapping = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(mapping);
  const auto address = reinterpret_cast<uintptr_t>(mapping);
  begin_ =
      mapping_ + (kHugePageBytes - address % kHugePageBytes) % kHugePageBytes;
  // A hint: where the kernel refuses, ordinary pages do the same work.
  madvise(begin_, slot_bytes * max_slots, MADV_HUGEPAGE);
}

SlotArena::SlotArena(SlotArena&& other) noexcept
    : slot_bytes_(other.slot_bytes_),
      max_slots_(other.max_slots_),
      mapped_bytes_(other.mapped_bytes_),
      mapping_(std::exchange(other.mapping_, nullptr)),
      begin_(other.begin_) {}

SlotArena::~SlotArena() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_bytes_);
}

void SlotArena::Discard(size_t first) {
  if (first >= max_slots_) return;
  madvise(slot(first), (max_slots_ - first) * slot_bytes_, MADV_DONTNEED);
}

bool SlotArena::Populate(size_t i) {
#ifdef MADV_POPULATE_WRITE
  return madvise(slot(i), slot_bytes_, MADV_POPULATE_WRITE) == 0;
#else
  return i >= max_slots_;  // none
#endif
}

void SlotArena::DiscardSlot(size_t i) {
  madvise(slot(i), slot_bytes_, MADV_DONTNEED);
}

}  // namespace muster::experts

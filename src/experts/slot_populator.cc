#include "experts/slot_populator.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace muster::experts {
namespace {

// Of the calling thread alone: Linux gives each a niceness of its own.
void TakeLowPriority() {
  constexpr int kLowest = 19;
  // Where it is refused, the work is done all the same.
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kLowest);
}

}  // namespace

SlotPopulator::SlotPopulator(const std::vector<Room>& rooms) {
  for (const Room& room : rooms) rooms_.push_back({.room = room});
  thread_ = std::thread([this] { Work(); });
}

SlotPopulator::~SlotPopulator() {
  {
    MutexLock lock(mutex_);
    stops_ = true;
  }
  changed_.NotifyAll();
  thread_.join();
}

void SlotPopulator::Take(size_t room, size_t slot) {
  {
    MutexLock lock(mutex_);
    Progress& progress = rooms_[room];
    if (slot < progress.num_taken) return;
    progress.num_taken = slot + 1;
    progress.num_made = std::max(progress.num_made, progress.num_taken);
    is_idle_ = false;
  }
  changed_.NotifyAll();
}

void SlotPopulator::WaitUntilIdle() {
  MutexLock lock(mutex_);
  while (!is_idle_) changed_.Wait(mutex_);
}

// The room that is least ahead; null: all are far enough.
SlotPopulator::Progress* SlotPopulator::FindWork() {
  Progress* least = nullptr;
  size_t least_ahead = kAheadBytes / rooms_.size();
  for (Progress& p : rooms_) {
    const size_t ahead =
        (p.num_made - p.num_taken) * p.room.arena->slot_bytes();
    if (p.num_made < p.room.num_slots && ahead < least_ahead) {
      least = &p;
      least_ahead = ahead;
    }
  }
  return least;
}

void SlotPopulator::Work() {
  TakeLowPriority();
  mutex_.Lock();
  while (!stops_) {
    Progress* progress = FindWork();
    if (progress == nullptr) {
      is_idle_ = true;
      changed_.NotifyAll();
      changed_.Wait(mutex_);
      continue;
    }
    const size_t slot = progress->num_made++;
    SlotArena& arena = *progress->room.arena;
    mutex_.Unlock();
    const bool made = arena.Populate(slot);
    mutex_.Lock();
    if (!made) progress->num_made = progress->room.num_slots;
  }
  mutex_.Unlock();
}

}  // namespace muster::experts

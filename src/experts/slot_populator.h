// The pages of slots, made before a read wants them. The system makes a page
// when it is first touched, and clears it: for the slots that a token's misses
// take in a cold start, that is more work than the token itself, and it falls
// to the thread that starts the reads. Here a thread of low priority does it
// while others wait for the disk.
#pragma once

#include <cstddef>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "experts/slot_arena.h"

namespace muster::experts {

class SlotPopulator {
 public:
  // So far ahead of what is taken, and no further: what is never taken costs
  // no more memory than this.
  static constexpr size_t kAheadBytes = size_t{256} << 20;

  struct Room {
    SlotArena* arena = nullptr;  // must outlive the populator and not move
    size_t num_slots = 0;        // of them, those that may be taken
  };

  // Begins at once with the first slots of each arena. On a system that cannot
  // do it (Linux before 5.14), slots are left as they are.
  explicit SlotPopulator(const std::vector<Room>& rooms);
  ~SlotPopulator();
  SlotPopulator(const SlotPopulator&) = delete;
  SlotPopulator& operator=(const SlotPopulator&) = delete;

  // The slot is about to be written. Slots are taken from the first on.
  void Take(size_t room, size_t slot);

  // Blocks until there is nothing to do before the next Take.
  void WaitUntilIdle();

 private:
  struct Progress {
    Room room;
    size_t num_taken = 0;
    size_t num_made = 0;  // taken ones among them
  };

  void Work();
  Progress* FindWork() REQUIRES(mutex_);

  Mutex mutex_;
  CondVar changed_;
  std::vector<Progress> rooms_ GUARDED_BY(mutex_);
  bool is_idle_ GUARDED_BY(mutex_) = false;
  bool stops_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // the last: it uses the others
};

}  // namespace muster::experts

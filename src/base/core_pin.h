// Keeping a thread on one core while that is to its good.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/cpus.h"
#include "base/mutex.h"

namespace muster {

// What is known of a core that threads are pinned to: whether others want it
// too. Where they do, a pin is let go for a while, because a pinned thread
// waits for its core where another would move; and two programs that both pin
// would keep to the same cores. Thread-safe.
class CoreWatch {
 public:
  using Clock = std::chrono::steady_clock;

  // A thread was pinned for `pinned_for`, until `now`, and meanwhile the system
  // took the core away from it `num_preemptions` times.
  void Add(uint64_t num_preemptions, Clock::duration pinned_for,
           Clock::time_point now);

  // Whether the core is better left alone.
  bool IsShared(Clock::time_point now) const;

  // How long it is then left alone.
  static constexpr std::chrono::seconds kRest{1};

 private:
  mutable Mutex mutex_;
  uint64_t num_preemptions_ GUARDED_BY(mutex_) = 0;
  Clock::duration pinned_for_ GUARDED_BY(mutex_){};
  Clock::time_point shared_until_ GUARDED_BY(mutex_){};
};

// Pins the thread that makes it to `cpu`, except where `watch` says that the
// core is shared, and gives the thread `otherwise` at the end. Use it on the
// thread that made it; `watch` must outlive it.
class CorePin {
 public:
  CorePin(unsigned cpu, CpuList otherwise, CoreWatch& watch);
  ~CorePin();
  CorePin(const CorePin&) = delete;
  CorePin& operator=(const CorePin&) = delete;

  // Lets go or pins again, by what has happened lately. Call it when the thread
  // has time: tens of nanoseconds, now and then some microseconds.
  void Review();

 private:
  void PinUnlessShared();
  void TellWatch();

  const CpuList home_;
  const CpuList otherwise_;
  CoreWatch& watch_;
  bool pinned_ = false;
  CoreWatch::Clock::time_point last_told_;
  uint64_t preemptions_told_ = 0;
};

}  // namespace muster

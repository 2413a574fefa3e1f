// How long a thread may spin for something before it sleeps.
#pragma once

#include <algorithm>
#include <chrono>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster {

// Spinning is quicker than sleeping when the wait is short and the core is
// ours; otherwise it takes a core from whoever could use it. Which of the two
// holds is learned: a wait that was short allows longer spinning next time, one
// that was long half as much, and a thread that found itself descheduled while
// it spun sleeps at once the next time. One thread.
class SpinBudget {
 public:
  using Clock = std::chrono::steady_clock;

  // Longer than the gap between two regions of one layer, far shorter than
  // anything a person could notice.
  static constexpr Clock::duration kLongest = std::chrono::microseconds(50);

  // Spins until ready(), for the budget at most; then calls sleep(), which
  // returns when ready() holds.
  template <class Ready, class Sleep>
  void Wait(const Ready& ready, const Sleep& sleep) {
    // Without a look at the clock: what is usual between two regions.
    if (SpinOnce(ready)) return;
    const Clock::time_point start = Clock::now();
    if (Spin(ready, start)) return Learn(Clock::now() - start);
    sleep();
    Learn(Clock::now() - start);
  }

  Clock::duration budget() const { return budget_; }

  // After a wait of `waited`.
  void Learn(Clock::duration waited) {
    if (waited > kLongest) {
      budget_ /= 2;
    } else {
      budget_ = std::min(kLongest, std::max(budget_ * 2, kLongest / 16));
    }
  }

 private:
  // Between two looks at the clock a spinning thread takes well under a
  // microsecond; with this between them, it was not running.
  static constexpr Clock::duration kDescheduled =
      std::chrono::microseconds(200);

  template <class Ready>
  static bool SpinOnce(const Ready& ready) {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
#if defined(__x86_64__)
      _mm_pause();
#endif
    }
    return false;
  }

  template <class Ready>
  bool Spin(const Ready& ready, Clock::time_point start) {
    for (Clock::time_point last = start; last - start < budget_;) {
      const bool is_ready = SpinOnce(ready);
      const Clock::time_point now = Clock::now();
      if (now - last > kDescheduled) budget_ = Clock::duration::zero();
      if (is_ready) return true;
      last = now;
    }
    return false;
  }

  Clock::duration budget_ = kLongest;
};

}  // namespace muster

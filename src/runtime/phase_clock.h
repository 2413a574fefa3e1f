// Where the time of a step goes.
#pragma once

#include <chrono>

#include "runtime/phase.h"

namespace muster::runtime {

// Seconds of each kind of work, as the calling thread saw them.
using PhaseTimes = PerPhase<double>;

// Books time on one phase after the other. Without a place to book it costs a
// branch a phase, else some 30 ns. One thread at a time.
class PhaseClock {
 public:
  // Begins in kOther. `times` may be null: nothing is booked then. It is added
  // to until Stop, and must live as long.
  void Start(PhaseTimes* times) {
    times_ = times;
    phase_ = Phase::kOther;
    if (times_ != nullptr) last_ = Clock::now();
  }

  // Time from here on belongs to `phase`.
  void Enter(Phase phase) {
    if (times_ != nullptr) Book();
    phase_ = phase;
  }

  void Stop() {
    if (times_ != nullptr) Book();
    times_ = nullptr;
  }

 private:
  using Clock = std::chrono::steady_clock;

  void Book() {
    const Clock::time_point now = Clock::now();
    const std::chrono::duration<double> spent = now - last_;
    (*times_)[Index(phase_)] += spent.count();
    last_ = now;
  }

  PhaseTimes* times_ = nullptr;
  Phase phase_ = Phase::kOther;
  Clock::time_point last_;
};

}  // namespace muster::runtime

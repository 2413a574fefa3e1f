// Ctrl-C as a wish to stop the answer, not the program.
#pragma once

namespace muster::cli {

// While one lives, SIGINT sets a flag instead of ending the process. One at a
// time.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // True once after each Ctrl-C.
  static bool Take();
};

}  // namespace muster::cli

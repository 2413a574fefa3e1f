// The time, as an object client sees it; tests have their own.
#pragma once

#include <cstdint>

namespace muster::io {

class ObjectClock {
 public:
  virtual ~ObjectClock() = default;

  virtual int64_t NowMs() = 0;        // never goes back
  virtual int64_t UnixSeconds() = 0;  // for signatures

  // Called when nothing but time can help: returns how long to really wait.
  virtual int64_t BeforeWait(int64_t wait_ms) = 0;

  static ObjectClock& System();
};

}  // namespace muster::io

#include "io/object/object_clock.h"

#include <chrono>

namespace muster::io {
namespace {

class SystemClock : public ObjectClock {
 public:
  int64_t NowMs() override {
    return std::chrono::duration_cast<std::chrono::milliseconds>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  int64_t UnixSeconds() override {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  int64_t BeforeWait(int64_t wait_ms) override { return wait_ms; }
};

}  // namespace

ObjectClock& ObjectClock::System() {
  static SystemClock clock;
  return clock;
}

}  // namespace muster::io

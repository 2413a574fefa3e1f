#include "base/core_pin.h"

#include <sys/resource.h>

#include <utility>

namespace muster {
namespace {

// Of the calling thread, since its start.
uint64_t NumPreemptions() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nivcsw);
}

// Long enough for another process to have shown itself.
constexpr std::chrono::milliseconds kWindow{50};

}  // namespace

void CoreWatch::Add(uint64_t num_preemptions, Clock::duration pinned_for,
                    Clock::time_point now) {
  // A system at rest takes a core away a few times a second, for moments; a
  // process that wants it too does every few milliseconds.
  constexpr uint64_t kSharedPerSecond = 20;
  MutexLock lock(mutex_);
  num_preemptions_ += num_preemptions;
  pinned_for_ += pinned_for;
  if (pinned_for_ < kWindow) return;
  if (std::chrono::seconds(num_preemptions_) > kSharedPerSecond * pinned_for_) {
    shared_until_ = now + kRest;
  }
  num_preemptions_ = 0;
  pinned_for_ = {};
}

bool CoreWatch::IsShared(Clock::time_point now) const {
  MutexLock lock(mutex_);
  return now < shared_until_;
}

CorePin::CorePin(unsigned cpu, CpuList otherwise, CoreWatch& watch)
    : home_{cpu}, otherwise_(std::move(otherwise)), watch_(watch) {
  PinUnlessShared();
}

CorePin::~CorePin() {
  if (!pinned_) return;
  TellWatch();
  BindThisThread(otherwise_);
}

void CorePin::Review() {
  const auto now = CoreWatch::Clock::now();
  if (now - last_told_ < kWindow) return;
  if (!pinned_) return PinUnlessShared();
  TellWatch();
  if (watch_.IsShared(now)) {
    BindThisThread(otherwise_);
    pinned_ = false;
  }
}

void CorePin::PinUnlessShared() {
  last_told_ = CoreWatch::Clock::now();
  if (watch_.IsShared(last_told_)) return;
  preemptions_told_ = NumPreemptions();
  // Where the system refuses, the thread runs as it did.
  pinned_ = BindThisThread(home_);
}

void CorePin::TellWatch() {
  const auto now = CoreWatch::Clock::now();
  const uint64_t preemptions = NumPreemptions();
  watch_.Add(preemptions - preemptions_told_, now - last_told_, now);
  last_told_ = now;
  preemptions_told_ = preemptions;
}

}  // namespace muster

// Sleeping until a number changes, and waking so many of those who sleep.
// std::atomic's wait and notify are the same without the count.
#pragma once

#include <atomic>
#include <cstdint>

namespace muster {

// Sleeps while `word` is `old`; may return earlier. Thread-safe.
void FutexWait(const std::atomic<uint32_t>& word, uint32_t old);

// Wakes at most `count` of the threads that sleep on `word`. Thread-safe.
void FutexWake(const std::atomic<uint32_t>& word, uint32_t count);

}  // namespace muster

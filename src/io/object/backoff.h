// How long to wait before an attempt: exponential, with jitter, so that many
// clients of a server that stumbled do not come back all at once.
#pragma once

#include <cstdint>
#include <random>

namespace muster::io {

class Backoff {
 public:
  // The same seed gives the same delays.
  Backoff(int64_t first_ms, int64_t max_ms, uint64_t seed)
      : first_ms_(first_ms), max_ms_(max_ms), random_(seed) {}

  // Before retry `retry` (0: the first): half to all of first * 2^retry, at
  // most max.
  int64_t DelayMs(int retry);

 private:
  const int64_t first_ms_;
  const int64_t max_ms_;
  std::mt19937_64 random_;
};

}  // namespace muster::io

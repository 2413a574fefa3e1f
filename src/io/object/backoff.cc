#include "io/object/backoff.h"

#include <algorithm>

namespace muster::io {

int64_t Backoff::DelayMs(int retry) {
  int64_t whole = first_ms_;
  for (int i = 0; i < retry && whole < max_ms_; ++i) whole *= 2;
  whole = std::max<int64_t>(1, std::min(whole, max_ms_));
  const int64_t half = whole / 2;
  // Not uniform_int_distribution: its results differ between libraries.
  const auto span = static_cast<uint64_t>(whole - half + 1);
  return half + static_cast<int64_t>(random_() % span);
}

}  // namespace muster::io

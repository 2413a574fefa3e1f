// What a trace zone costs, off and on: nanoseconds, the median of batches.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "telemetry/trace.h"

namespace muster::telemetry {
namespace {

double NanosecondsPerZone() {
  using Clock = std::chrono::steady_clock;
  constexpr int kZones = 1000;
  std::vector<double> ns;
  for (int batch = 0; batch < 201; ++batch) {
    const auto start = Clock::now();
    for (int i = 0; i < kZones; ++i) {
      const TraceZone zone("zone", {"layer", i});
    }
    ns.push_back(
        std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
        kZones);
  }
  std::nth_element(ns.begin(), ns.begin() + ns.size() / 2, ns.end());
  return ns[ns.size() / 2];
}

}  // namespace
}  // namespace muster::telemetry

int main() {
  using muster::telemetry::NanosecondsPerZone;
  fmt::print("zone, off: {:.1f} ns\n", NanosecondsPerZone());
  const muster::telemetry::Trace trace;
  fmt::print("zone, on:  {:.1f} ns\n", NanosecondsPerZone());
}

// Counters that every benchmark reports.
#pragma once

#include <benchmark/benchmark.h>

namespace muster::bench {

// `bytes` read and `operations` done in one iteration, as rates. Every
// multiplication and every addition is one operation.
inline void SetRates(benchmark::State& state, double bytes, double operations) {
  using benchmark::Counter;
  const auto rate = [](double amount) {
    return Counter(amount, Counter::kIsIterationInvariantRate,
                   Counter::kIs1000);
  };
  state.counters["B/s"] = rate(bytes);
  state.counters["op/s"] = rate(operations);
}

}  // namespace muster::bench

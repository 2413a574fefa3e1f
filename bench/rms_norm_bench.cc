#include "kernels/rms_norm.h"

#include <benchmark/benchmark.h>

#include <vector>

#include "bench/rates.h"

namespace muster::bench {
namespace {

void RmsNorm(benchmark::State& state) {
  const auto dim = static_cast<size_t>(state.range(0));
  const std::vector<float> x(dim, 0.5f), scale(dim, 2.0f);
  std::vector<float> out(dim);
  for (auto _ : state) {
    kernels::RmsNorm(x.data(), scale.data(), 1e-6f, dim, out.data());
    benchmark::DoNotOptimize(out.data());
  }
  // Twice x, once the scale; a square, a sum and two products an element.
  SetRates(state, static_cast<double>(3 * dim * sizeof(float)),
           static_cast<double>(4 * dim));
}

BENCHMARK(RmsNorm)->Arg(128)->Arg(2048)->Arg(4096);

}  // namespace
}  // namespace muster::bench

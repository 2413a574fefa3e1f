// From logits to experts, and the grouping of a batch by expert.
#include "routing/router.h"

#include <benchmark/benchmark.h>

#include <random>
#include <vector>

#include "bench/rates.h"
#include "routing/grouping.h"

namespace muster::bench {
namespace {

// Arguments: experts, top_k, tokens.
void RouteAndGroup(benchmark::State& state) {
  const routing::RouterConfig config = {
      .num_experts = static_cast<uint32_t>(state.range(0)),
      .top_k = static_cast<uint32_t>(state.range(1)),
      .normalize_top_k = true};
  const auto num_tokens = static_cast<size_t>(state.range(2));
  std::mt19937 rng(1);
  std::normal_distribution<float> normal;
  std::vector<float> logits(num_tokens * config.num_experts);
  for (float& logit : logits) logit = normal(rng);
  routing::Routing routing;
  routing::ExpertGroups groups;
  for (auto _ : state) {
    routing::Route(config, logits.data(), nullptr, num_tokens, &routing);
    routing::GroupByExpert(routing, config.num_experts, &groups);
    benchmark::DoNotOptimize(groups.tokens.data());
  }
  // One score for each logit.
  SetRates(state, static_cast<double>(logits.size() * sizeof(float)),
           static_cast<double>(logits.size()));
}

BENCHMARK(RouteAndGroup)
    ->ArgNames({"experts", "k", "tokens"})
    ->Args({128, 8, 1})
    ->Args({128, 8, 512})
    ->Args({60, 4, 1})
    ->Args({8, 2, 1});

}  // namespace
}  // namespace muster::bench

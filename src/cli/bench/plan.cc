#include "cli/bench/plan.h"

#include <fmt/format.h>

#include <algorithm>

namespace muster::cli {
namespace {

std::vector<EngineVariant> EveryEngine(const BenchFlags& flags) {
  const Tuning tuned = TunedDefaults(flags.engine);
  std::vector<EngineVariant> engines;
  for (const size_t num_threads : flags.num_threads) {
    for (const std::string& kv_type : flags.kv_types) {
      for (const size_t chunk : flags.chunks) {
        engines.push_back({num_threads != 0 ? num_threads : tuned.num_threads,
                           chunk != 0 ? chunk : tuned.chunk_tokens, kv_type});
      }
    }
  }
  return engines;
}

std::vector<BenchTest> EveryTest(const BenchFlags& flags) {
  std::vector<BenchTest> tests;
  for (const size_t count : flags.prompt_tokens) {
    if (count != 0) tests.push_back({TestKind::kPrompt, count});
  }
  for (const size_t count : flags.generated_tokens) {
    if (count != 0) tests.push_back({TestKind::kGeneration, count});
  }
  return tests;
}

size_t LongestTest(const BenchPlan& plan) {
  size_t longest = 0;
  for (const BenchTest& test : plan.tests) {
    longest = std::max(longest, test.num_tokens);
  }
  return longest;
}

}  // namespace

std::string BenchTest::name() const {
  return fmt::format("{}{}", kind == TestKind::kPrompt ? "pp" : "tg",
                     num_tokens);
}

size_t BenchPlan::context_length() const {
  return depths.back() + LongestTest(*this);
}

uint64_t BenchPlan::num_tokens() const {
  uint64_t tested = 0;
  for (const BenchTest& test : tests) tested += test.num_tokens;
  const uint64_t per_engine =
      depths.back() + depths.size() * repetitions * tested;
  return engines.size() * per_engine;
}

Result<BenchPlan> MakePlan(const BenchFlags& flags,
                           const model::ModelConfig& config) {
  ASSIGN_OR_RETURN(const auto routing, ParseRouting(flags.engine));
  BenchPlan plan = {.engines = EveryEngine(flags),
                    .depths = flags.depths,
                    .tests = EveryTest(flags),
                    .repetitions = flags.repetitions,
                    .phase_times = flags.roofline,
                    .routing = routing};
  std::sort(plan.depths.begin(), plan.depths.end());
  plan.depths.erase(std::unique(plan.depths.begin(), plan.depths.end()),
                    plan.depths.end());
  if (plan.tests.empty()) {
    return InvalidArgument("there is nothing to measure: -p and -n are both 0");
  }
  if (plan.context_length() > config.context_length) {
    return InvalidArgument(fmt::format(
        "{} tokens behind {} are more than the {} that the model was made for",
        LongestTest(plan), plan.depths.back(), config.context_length));
  }
  return plan;
}

}  // namespace muster::cli

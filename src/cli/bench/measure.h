// Times an engine on fixed tokens.
//
// Protocol: every repetition counts, none is thrown away as a warm-up. The
// tests of a depth take turns (pp, tg, pp, tg, ...), so that a slow moment of
// the machine hits all of them; the median leaves a slow first one out, the
// spread shows it, and the samples stand in order in the JSON.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/status.h"
#include "cli/bench/plan.h"
#include "runtime/engine.h"
#include "telemetry/tier_counters.h"

namespace muster::cli {

// One line of the table.
struct Measurement {
  EngineVariant engine;  // num_threads as it ran, never 0
  size_t depth = 0;
  BenchTest test;
  std::vector<double> seconds;  // of each repetition, in order
  // Of all repetitions together, where the plan asks for it; else zeros.
  runtime::PhaseTimes phase_seconds = {};
  // Of all repetitions together; zeros when all experts are in memory.
  telemetry::TierCounters tiers = {};

  std::vector<double> tokens_per_second() const;
};

// The token at each position: pseudo-random, the same in every run of the
// program. Each repetition takes a series of its own: other tokens call other
// experts, and a cache of experts does not know them yet.
// REQUIRES: vocab_size >= 1.
int32_t BenchToken(size_t position, size_t series, size_t vocab_size);

// Leaves exactly `depth` tokens in the engine's context. `done_tokens` grows by
// those that had to run.
Status FillContext(runtime::Engine& engine, size_t depth,
                   std::atomic<uint64_t>& done_tokens);

// Seconds that one run of `test` takes behind the first `depth` tokens.
// REQUIRES: engine.position() >= depth.
Result<double> TimeTest(runtime::Engine& engine, size_t depth,
                        const BenchTest& test, size_t series);

// Runs the whole plan on `model`. `done_tokens` grows as tokens run; `finished`
// gets each measurement as soon as it has all its repetitions.
Result<std::vector<Measurement>> Measure(
    const std::shared_ptr<const runtime::LoadedModel>& model,
    const BenchPlan& plan, std::atomic<uint64_t>& done_tokens,
    const std::function<void(const Measurement&)>& finished);

}  // namespace muster::cli

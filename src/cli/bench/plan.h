// What `muster bench` measures: engines, depths and tests.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/engine_flags.h"
#include "model/config.h"

namespace muster::cli {

struct BenchFlags {
  EngineFlags engine;  // model, isa, quiet, no_tuning
  // A measurement is made for each member of each list with each of the others.
  std::vector<size_t> prompt_tokens = {512};
  std::vector<size_t> generated_tokens = {64};
  std::vector<size_t> depths = {0};
  std::vector<size_t> num_threads = {0};
  std::vector<size_t> chunks = {0};
  std::vector<std::string> kv_types = {"f16"};
  size_t repetitions = 5;
  bool roofline = false;     // also: where the time goes
  bool tune = false;         // find the best settings and keep them instead
  bool report_cost = false;  // what counting for the report costs
  bool json = false;
};

enum class TestKind { kPrompt, kGeneration };

// One thing that is timed: a prompt in one call, or tokens one by one.
struct BenchTest {
  TestKind kind = TestKind::kPrompt;
  size_t num_tokens = 0;

  std::string name() const;  // "pp512", "tg64"
};

struct EngineVariant {
  size_t num_threads = 0;
  size_t chunk_tokens = 0;
  std::string kv_type;
};

struct BenchPlan {
  std::vector<EngineVariant> engines;
  std::vector<size_t> depths;    // ascending, none twice
  std::vector<BenchTest> tests;  // prompts first; a 0 in a list means none
  size_t repetitions = 1;
  bool phase_times = false;
  runtime::RoutingChoice routing;

  // Positions that the deepest and longest test needs.
  size_t context_length() const;
  // Tokens that go through the model, at most.
  uint64_t num_tokens() const;
};

// Fails with kInvalidArgument when nothing is left to measure or a test needs
// more positions than the model was made for.
Result<BenchPlan> MakePlan(const BenchFlags& flags,
                           const model::ModelConfig& config);

}  // namespace muster::cli

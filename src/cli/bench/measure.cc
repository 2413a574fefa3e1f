#include "cli/bench/measure.h"

#include <algorithm>
#include <chrono>
#include <span>

namespace muster::cli {
namespace {

using runtime::Engine;

// A finaliser of MurmurHash3 (Appleby): neighbours become unlike each other.
uint64_t Scramble(uint64_t x) {
  x = (x ^ (x >> 33)) * 0xff51afd7ed558ccdULL;
  x = (x ^ (x >> 33)) * 0xc4ceb9fe1a85ec53ULL;
  return x ^ (x >> 33);
}

std::vector<int32_t> BenchTokens(const Engine& engine, size_t begin, size_t end,
                                 size_t series) {
  std::vector<int32_t> tokens;
  tokens.reserve(end - begin);
  for (size_t position = begin; position < end; ++position) {
    tokens.push_back(
        BenchToken(position, series, engine.model().config.vocab_size));
  }
  return tokens;
}

Result<std::unique_ptr<Engine>> MakeEngine(
    const std::shared_ptr<const runtime::LoadedModel>& model,
    const EngineVariant& variant, const BenchPlan& plan) {
  return Engine::Create(model, {.num_threads = variant.num_threads,
                                .context_length = plan.context_length(),
                                .chunk_tokens = variant.chunk_tokens,
                                .kv_type = KvTypeOf(variant.kv_type),
                                .routing = plan.routing});
}

Status MeasureDepth(Engine& engine, const BenchPlan& plan, size_t depth,
                    std::span<Measurement> lines,
                    std::atomic<uint64_t>& done_tokens) {
  for (size_t repetition = 0; repetition < plan.repetitions; ++repetition) {
    for (Measurement& line : lines) {
      if (plan.phase_times) engine.KeepPhaseTimes(&line.phase_seconds);
      const telemetry::TierCounters before = engine.tier_counters();
      ASSIGN_OR_RETURN(const double seconds,
                       TimeTest(engine, depth, line.test, repetition));
      line.tiers.Add(engine.tier_counters().Since(before));
      line.seconds.push_back(seconds);
      done_tokens += line.test.num_tokens;
    }
  }
  engine.KeepPhaseTimes(nullptr);
  return {};
}

}  // namespace

std::vector<double> Measurement::tokens_per_second() const {
  std::vector<double> speeds;
  speeds.reserve(seconds.size());
  for (const double s : seconds) {
    speeds.push_back(static_cast<double>(test.num_tokens) / s);
  }
  return speeds;
}

int32_t BenchToken(size_t position, size_t series, size_t vocab_size) {
  return static_cast<int32_t>(Scramble(position + 1 + (series << 32)) %
                              vocab_size);
}

Status FillContext(Engine& engine, size_t depth,
                   std::atomic<uint64_t>& done_tokens) {
  constexpr size_t kPiece = 1024;  // tokens between two steps of the bar
  if (engine.position() > depth) engine.Rewind(depth);
  while (engine.position() < depth) {
    const size_t begin = engine.position();
    const size_t end = std::min(depth, begin + kPiece);
    RETURN_IF_ERROR(engine.Append(BenchTokens(engine, begin, end, 0)).status());
    done_tokens += end - begin;
  }
  return {};
}

Result<double> TimeTest(Engine& engine, size_t depth, const BenchTest& test,
                        size_t series) {
  engine.Rewind(depth);
  const std::vector<int32_t> tokens =
      BenchTokens(engine, depth, depth + test.num_tokens, series);
  const size_t tokens_a_call =
      test.kind == TestKind::kPrompt ? test.num_tokens : 1;
  const auto start = std::chrono::steady_clock::now();
  for (size_t at = 0; at < tokens.size(); at += tokens_a_call) {
    RETURN_IF_ERROR(
        engine.Append(std::span(tokens).subspan(at, tokens_a_call)).status());
  }
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - start;
  return spent.count();
}

Result<std::vector<Measurement>> Measure(
    const std::shared_ptr<const runtime::LoadedModel>& model,
    const BenchPlan& plan, std::atomic<uint64_t>& done_tokens,
    const std::function<void(const Measurement&)>& finished) {
  std::vector<Measurement> all;
  for (EngineVariant variant : plan.engines) {
    ASSIGN_OR_RETURN(const auto engine, MakeEngine(model, variant, plan));
    variant.num_threads = engine->num_threads();
    for (const size_t depth : plan.depths) {
      RETURN_IF_ERROR(FillContext(*engine, depth, done_tokens));
      const size_t first = all.size();
      for (const BenchTest& test : plan.tests) {
        all.push_back({.engine = variant, .depth = depth, .test = test});
      }
      const auto lines = std::span(all).subspan(first);
      RETURN_IF_ERROR(MeasureDepth(*engine, plan, depth, lines, done_tokens));
      for (const Measurement& line : lines) finished(line);
    }
  }
  return all;
}

}  // namespace muster::cli

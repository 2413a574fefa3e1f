#include "cli/bench/tune.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "cli/bench/samples.h"
#include "io/user_cache.h"

namespace muster::cli {
namespace {

constexpr size_t kPromptTokens = 1024;  // as many as the largest chunk
constexpr size_t kGeneratedTokens = 32;
constexpr size_t kChunks[] = {128, 256, 512, 1024};
constexpr const char* kKvType = "f16";

size_t ShippedChunk() { return runtime::EngineOptions().chunk_tokens; }

// The shipped setting first: it is the one to beat.
std::vector<size_t> ThreadCandidates() {
  const size_t all = DefaultNumThreads();
  std::vector<size_t> counts = {all};
  for (const size_t fewer : {all * 3 / 4, all / 2}) {
    if (fewer >= 1 && fewer != counts.back()) counts.push_back(fewer);
  }
  return counts;
}

std::vector<size_t> ChunkCandidates(size_t prompt_tokens) {
  std::vector<size_t> chunks = {ShippedChunk()};
  for (const size_t chunk : kChunks) {
    if (chunk != ShippedChunk() && chunk <= prompt_tokens) {
      chunks.push_back(chunk);
    }
  }
  return chunks;
}

double Speed(const Measurement& m) {
  return SpreadOf(m.tokens_per_second()).median;
}

// Round after round, so that a slow moment hits all.
Result<std::vector<Measurement>> MeasureInTurns(
    const std::shared_ptr<const runtime::LoadedModel>& model,
    std::vector<EngineVariant> engines, BenchTest test, size_t repetitions) {
  const BenchPlan plan = {.engines = std::move(engines),
                          .depths = {0},
                          .tests = {test},
                          .repetitions = 1};
  std::vector<Measurement> all;
  std::atomic<uint64_t> done_tokens{0};
  for (size_t round = 0; round < repetitions; ++round) {
    ASSIGN_OR_RETURN(const auto found, Measure(model, plan, done_tokens,
                                               [](const Measurement&) {}));
    if (all.empty()) {
      all = found;
      continue;
    }
    for (size_t i = 0; i < all.size(); ++i) {
      all[i].seconds.push_back(found[i].seconds.front());
    }
  }
  return all;
}

// The first, unless another is faster by more than the margin.
const Measurement& BestOf(const std::vector<Measurement>& candidates) {
  const Measurement& shipped = candidates.front();
  const Measurement& fastest = *std::ranges::max_element(candidates, {}, Speed);
  return Speed(fastest) > (1 + kTuneMargin) * Speed(shipped) ? fastest
                                                             : shipped;
}

}  // namespace

Result<TuneResult> Tune(
    const std::shared_ptr<const runtime::LoadedModel>& model,
    size_t repetitions) {
  const size_t room = model->config.context_length;
  std::vector<EngineVariant> engines;
  for (const size_t num_threads : ThreadCandidates()) {
    engines.push_back({num_threads, ShippedChunk(), kKvType});
  }
  ASSIGN_OR_RETURN(
      const auto by_threads,
      MeasureInTurns(model, engines,
                     {TestKind::kGeneration, std::min(kGeneratedTokens, room)},
                     repetitions));
  TuneResult result;
  result.best.num_threads = BestOf(by_threads).engine.num_threads;
  result.untuned_decode_share =
      Speed(by_threads.front()) / Speed(BestOf(by_threads));

  const size_t prompt_tokens = std::min(kPromptTokens, room);
  engines.clear();
  for (const size_t chunk : ChunkCandidates(prompt_tokens)) {
    engines.push_back({result.best.num_threads, chunk, kKvType});
  }
  ASSIGN_OR_RETURN(
      const auto by_chunk,
      MeasureInTurns(model, engines, {TestKind::kPrompt, prompt_tokens},
                     repetitions));
  result.best.chunk_tokens = BestOf(by_chunk).engine.chunk_tokens;
  result.untuned_prefill_share =
      Speed(by_chunk.front()) / Speed(BestOf(by_chunk));
  result.measurements = by_threads;
  result.measurements.insert(result.measurements.end(), by_chunk.begin(),
                             by_chunk.end());
  return result;
}

std::string TuneText(const TuneResult& result) {
  return fmt::format(
      "\nBest here: {} threads, prompts {} tokens a step.\n"
      "As shipped, prompts reach {:.1f} % and generation {:.1f} % of that.\n",
      result.best.num_threads, result.best.chunk_tokens,
      100 * result.untuned_prefill_share, 100 * result.untuned_decode_share);
}

nlohmann::ordered_json TuneJson(const TuneResult& result) {
  return {{"key", io::MachineKey()},
          {"num_threads", result.best.num_threads},
          {"chunk_tokens", result.best.chunk_tokens},
          {"untuned_prefill_share", result.untuned_prefill_share},
          {"untuned_decode_share", result.untuned_decode_share}};
}

}  // namespace muster::cli

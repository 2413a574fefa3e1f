// Finds the settings that run fastest here; none of them changes what comes
// out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/bench/measure.h"
#include "cli/tuning.h"

namespace muster::cli {

struct TuneResult {
  // As shipped, unless another was faster by more than kTuneMargin.
  Tuning best;
  // Speed of the shipped settings against the best, at most 1 but for noise.
  double untuned_prefill_share = 1;
  double untuned_decode_share = 1;
  std::vector<Measurement> measurements;  // of every candidate
};

inline constexpr double kTuneMargin = 0.02;

// Threads by decode, then the chunk by prefill with these threads; candidates
// take turns. Blocks for a minute or two with a large model.
Result<TuneResult> Tune(
    const std::shared_ptr<const runtime::LoadedModel>& model,
    size_t repetitions);

std::string TuneText(const TuneResult& result);
nlohmann::ordered_json TuneJson(const TuneResult& result);

}  // namespace muster::cli

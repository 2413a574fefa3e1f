// What a token must cost at least: the bytes that it reads and the operations
// that it takes, counted from the weights in memory.
#pragma once

#include <cstdint>

#include "kernels/attention.h"
#include "runtime/loaded_model.h"
#include "runtime/phase.h"

namespace muster::cli {

// Each multiplication and each addition is one operation. Products with
// quantised weights multiply bytes, those with BF16 weights BF16, all others
// floats.
struct Cost {
  double bytes = 0;
  double byte_ops = 0;
  double bfloat_ops = 0;
  double float_ops = 0;

  Cost& operator+=(const Cost& other);
};
Cost operator*(double times, Cost cost);

using PhaseCosts = runtime::PerPhase<Cost>;
Cost Sum(const PhaseCosts& costs);

// A decode step of one token that attends over `positions`: every matrix that
// is always on, top_k experts a layer, the output head, and the cache.
PhaseCosts DecodeCost(const runtime::LoadedModel& model, kernels::KvType kv,
                      double positions);

// `num_tokens` prompt tokens behind `depth`, `chunk_tokens` a step. A step
// reads a matrix once for all its tokens, and of the experts as many as its
// tokens choose between them if they choose evenly: E (1 - (1 - k / E)^tokens).
// The head runs once.
PhaseCosts PrefillCost(const runtime::LoadedModel& model, kernels::KvType kv,
                       size_t depth, size_t num_tokens, size_t chunk_tokens);

}  // namespace muster::cli

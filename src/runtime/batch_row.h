// One row of a step's batch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/kv_cache.h"

namespace muster::runtime {

// A token of some sequence. Rows of one sequence in a batch stand in the order
// of their positions, and each position before them is in the cache.
struct BatchRow {
  int32_t token = 0;    // REQUIRES: 0 <= token < vocab_size
  size_t position = 0;  // REQUIRES: position < kv->capacity()
  KvCache* kv = nullptr;
  bool wants_logits = false;
};

}  // namespace muster::runtime

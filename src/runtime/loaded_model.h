// A model with all its weights in memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "formats/model_files.h"
#include "model/config_reader.h"
#include "model/parameters.h"
#include "model/weight_index.h"
#include "model/weights.h"
#include "tensor/aligned_buffer.h"

namespace muster::runtime {

// Written by the loader, read by whoever draws the bar. Thread-safe.
struct LoadProgress {
  std::atomic<uint64_t> done_bytes{0};
  std::atomic<uint64_t> total_bytes{0};
};

// Immutable once loaded: any number of threads may read it.
struct LoadedModel {
  model::ModelConfig config;
  std::vector<std::string> assumptions;  // defaults taken: print them
  model::ParameterCounts parameters;
  model::ModelWeights weights;  // views into the two arenas below
  AlignedBuffer blocks;         // weights as the file has them
  AlignedBuffer floats;         // norms, biases, routers, scales as float32

  uint64_t memory_bytes() const {
    return blocks.size_bytes() + floats.size_bytes();
  }
};

// Bytes of memory that LoadModel will take for the weights.
uint64_t WeightMemoryBytes(const model::WeightIndex& index);

// Reads every weight with all threads of `pool`. Blocks. Fails with
// kUnsupported or kCorrupt on a model that cannot run, kResourceExhausted when
// the weights would not fit in the memory that this process may use, kIoError
// when a read fails. `progress` may be null.
Result<std::unique_ptr<LoadedModel>> LoadModel(const formats::ModelFiles& files,
                                               ThreadPool& pool,
                                               LoadProgress* progress);

}  // namespace muster::runtime

// A model whose weights are in memory, but for routed experts that did not fit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "experts/expert_tiers.h"
#include "formats/model_files.h"
#include "model/config_reader.h"
#include "model/parameters.h"
#include "model/weight_index.h"
#include "model/weights.h"
#include "runtime/embedding_table.h"
#include "runtime/engine_options.h"
#include "runtime/memory_plan.h"
#include "tensor/aligned_buffer.h"

namespace muster::runtime {

// Written by the loader, read by whoever draws the bar. Thread-safe.
struct LoadProgress {
  std::atomic<uint64_t> done_bytes{0};
  std::atomic<uint64_t> total_bytes{0};
};

// Immutable once loaded: any number of threads may read it. The tiers are not:
// who steps the model has them to itself for the step.
struct LoadedModel {
  model::ModelConfig config;
  std::vector<std::string> assumptions;  // defaults taken: print them
  model::ParameterCounts parameters;
  model::ModelWeights weights;  // views into the arenas below
  EmbeddingTable embedding;     // of the weights, or on disk
  MemoryPlan plan;
  // Null: all experts are in `weights`. Else layers with a router have none
  // there, and these have them.
  std::unique_ptr<experts::ExpertTiers> tiers;
  AlignedBuffer blocks;  // matrices as products read them
  AlignedBuffer floats;  // norms, biases, routers, scales as float32
  AlignedBuffer packed;  // of a pack that is all in memory: its routed experts

  uint64_t memory_bytes() const {
    return blocks.size_bytes() + floats.size_bytes() + packed.size_bytes();
  }
};

// Bytes of memory that all weights take. `pack`: as in ModelFiles.
uint64_t WeightMemoryBytes(const model::WeightIndex& index,
                           const formats::ExpertPack* pack);

// Reads the weights with all threads of `pool`: every one, or all but the
// routed experts when those do not fit. Blocks. Fails with kUnsupported or
// kCorrupt on a model that cannot run, kResourceExhausted when not even that
// fits in the memory that the options or the machine grant, kIoError when a
// read fails. What comes from a pack is checked against its checksums: kCorrupt
// names what does not fit. `progress` may be null.
Result<std::unique_ptr<LoadedModel>> LoadModel(const formats::ModelFiles& files,
                                               const EngineOptions& options,
                                               ThreadPool& pool,
                                               LoadProgress* progress);

}  // namespace muster::runtime

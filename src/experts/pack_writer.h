// Writes expert packs. The format: docs/formats/pack.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/status.h"
#include "experts/expert_order.h"
#include "experts/pack_source.h"

namespace muster::experts {

// Written by the worker threads, read by whoever draws the bar. Thread-safe.
struct PackProgress {
  std::atomic<uint64_t> done_bytes{0};
  std::atomic<uint64_t> total_bytes{0};
};

struct PackOptions {
  size_t num_threads = 1;  // as many read and convert at once
  uint64_t shard_bytes = uint64_t{4} << 30;
  // Of each expert a low-bit copy in this type, too (kernels/quantize.h).
  std::optional<DType> copies = {};
  bool force = false;  // replaces a pack that stands there
  // Asked now and then, by any thread; true: stop, keeping what is done. May be
  // empty.
  std::function<bool()> stop = {};
};

struct PackResult {
  uint64_t size_bytes = 0;  // of all files of the pack
  size_t num_experts = 0;
  size_t num_shards = 0;  // with experts or copies
  size_t num_units = 0;
  size_t num_resumed_units = 0;  // done by an earlier call
};

// Makes a pack of `source` in the folder `out`, which must not exist, be empty,
// or (with `force`) be a pack. Works in `out`.partial and renames at the end,
// so that `out` is a whole pack or is not there; called again after an
// interruption, it goes on with what is there, if the source, the order and the
// sizes are the same. Blocks. Memory: two experts a thread. Fails with
// kResourceExhausted, before anything is written, when the disk lacks room;
// kCancelled when stopped; kUnavailable while another process writes there.
// `progress` may be null.
Result<PackResult> WritePack(const PackSource& source, const ExpertOrder& order,
                             const std::string& out, const PackOptions& options,
                             PackProgress* progress);

}  // namespace muster::experts

// Which resident expert to give up when another needs its room: pure
// bookkeeping, the same code in the cache and in `muster simulate`.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "base/status.h"

namespace muster::experts {

// Experts of a model are numbered over all layers, 0 to num_experts - 1, layer
// after layer (see expert_table.h).
inline constexpr uint32_t kNoExpert = std::numeric_limits<uint32_t>::max();

// One thread at a time.
class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // The step has come to this layer; the uses that follow belong to it.
  virtual void BeginLayer(uint32_t layer) = 0;
  // The expert is resident from now on, and so many tokens of the step use it.
  // REQUIRES: it was not.
  virtual void Insert(uint32_t expert, uint32_t num_tokens) = 0;
  // It is used again. REQUIRES: it is resident.
  virtual void Use(uint32_t expert, uint32_t num_tokens) = 0;
  // It is resident no more, whoever decided so. REQUIRES: it was.
  virtual void Remove(uint32_t expert) = 0;
  // The resident expert to give up first among those that nobody holds;
  // kNoExpert when there is none. Changes nothing.
  //   pins: [num_experts], 0: may go
  virtual uint32_t Victim(std::span<const uint32_t> pins) const = 0;
};

struct PolicyShape {
  uint32_t num_layers = 0;
  uint32_t num_experts = 0;            // over all layers
  std::span<const uint32_t> layer_of;  // [num_experts]; copied
};

// "lru": least recently used. "lfru": least frequently used, frequency fading
// with age. "least-stale": experts of layers that this step has passed already
// go first. Fails with kInvalidArgument on another name, naming these.
Result<std::unique_ptr<EvictionPolicy>> MakeEvictionPolicy(
    std::string_view name, const PolicyShape& shape);

// The names that it takes, the default first.
std::span<const std::string_view> EvictionPolicyNames();

}  // namespace muster::experts

// Which expert: a layer and an index in it. Layers may differ in how many
// experts they have, so neither number says anything alone.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace muster::routing {

struct ExpertId {
  uint32_t layer = 0;
  uint32_t index = 0;

  friend auto operator<=>(const ExpertId&, const ExpertId&) = default;
};

}  // namespace muster::routing

template <>
struct std::hash<muster::routing::ExpertId> {
  size_t operator()(const muster::routing::ExpertId& id) const noexcept {
    return std::hash<uint64_t>()(uint64_t{id.layer} << 32 | id.index);
  }
};

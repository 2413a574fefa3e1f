// The kinds of work in a step: what a report of time or of traffic is cut into.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace muster::runtime {

enum class Phase : uint8_t {
  kQkv,        // query, key and value projections
  kAttention,  // over the cache, with the rotation and the store before
  kOutput,     // projection of what attention gathered
  kRouter,     // logits and the choice of experts
  kGateUp,     // of routed, shared and dense experts, with the activation
  kWait,       // for experts that a lower tier brings, with nothing to compute
  kDown,       // of the same, with the weighted sum
  kHead,       // logits of the vocabulary
  kOther,      // embedding, norms, residuals
};
inline constexpr size_t kNumPhases = 9;

inline constexpr std::array<std::string_view, kNumPhases> kPhaseNames = {
    "qkv",  "attention", "o",    "router", "gate-up",
    "wait", "down",      "head", "other"};

template <class T>
using PerPhase = std::array<T, kNumPhases>;

constexpr size_t Index(Phase phase) { return static_cast<size_t>(phase); }
constexpr std::string_view Name(Phase phase) {
  return kPhaseNames[Index(phase)];
}

}  // namespace muster::runtime

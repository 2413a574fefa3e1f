// How often each expert of each layer was chosen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::telemetry {

// Raw counters, keyed by the model's own layer numbers: a dense layer has no
// experts and stays empty (CASES R18). Only tokens that ran are counted, so
// that in every MoE layer the counts sum to tokens x top_k exactly (CASES S01).
// One thread at a time.
class RoutingStats {
 public:
  RoutingStats() = default;
  // One entry per layer; 0 experts: a dense layer, whatever its top_k.
  // REQUIRES: 1 <= top_k <= num_experts in the others.
  RoutingStats(std::vector<uint32_t> num_experts, std::vector<uint32_t> top_k);

  // Adds a step of a layer: the tokens that one forward pass took through it.
  // ids: [tokens, top_k]. Without tokens it is no step.
  // REQUIRES: the layer has experts, and every id is below their number.
  void Record(uint32_t layer, std::span<const uint32_t> ids);

  // Adds another's counts. REQUIRES: the same shape.
  void Merge(const RoutingStats& other);

  // Forgets all counts; the shape stays.
  void Reset();

  size_t num_layers() const { return counts_.size(); }
  uint32_t num_experts(size_t layer) const { return num_experts_[layer]; }
  uint32_t top_k(size_t layer) const { return top_k_[layer]; }
  // Times that each expert was chosen.   [num_experts]
  std::span<const uint64_t> counts(size_t layer) const {
    return counts_[layer];
  }
  uint64_t tokens(size_t layer) const;  // that passed the layer
  uint64_t steps(size_t layer) const { return steps_[layer]; }
  uint32_t distinct(size_t layer) const;  // experts chosen at least once
  uint64_t distinct_in_all() const;       // summed over layers
  uint64_t experts_in_all() const;        // summed over layers
  // Experts that a step touched, on average over steps: what a step must read.
  // top_k when steps have one token. 0 without steps.
  double MeanDistinctPerStep(size_t layer) const;
  // The `n` most chosen experts, most first, ties to the lowest id; those never
  // chosen are left out.
  std::vector<uint32_t> Top(size_t layer, size_t n) const;

  // Mean over MoE layers of mean load / largest load: 1 is even, 1 / experts is
  // one expert doing all (CASES S03). 0 when nothing was recorded.
  double Balancedness() const;

 private:
  std::vector<uint32_t> num_experts_;
  std::vector<uint32_t> top_k_;
  std::vector<std::vector<uint64_t>> counts_;
  // The latest step that chose an expert, from 1; 0: none yet.
  std::vector<std::vector<uint64_t>> last_step_;
  std::vector<uint64_t> steps_;
  std::vector<uint64_t> distinct_in_steps_;  // summed over steps
};

}  // namespace muster::telemetry

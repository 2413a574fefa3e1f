// Rotary position embedding (Su et al., 2021) with its scalings.
#pragma once

#include <cstddef>
#include <vector>

namespace muster::kernels {

// Which two elements of a head form a pair.
enum class RopePairing {
  kHalves,       // (i, i + dim / 2): Hugging Face's layout
  kInterleaved,  // (2i, 2i + 1): GGUF files of the llama family
};

// The angles' cosines and sines for a range of positions, computed in double
// and rounded once. Immutable after construction; reads are thread-safe.
class RopeTable {
 public:
  // `inv_freq` [rope_dim / 2]: radians a position, scaling already applied.
  // `magnitude` multiplies cos and sin (YaRN's attention factor; else 1).
  RopeTable(std::vector<double> inv_freq, double magnitude,
            size_t num_positions);

  size_t num_positions() const { return num_positions_; }
  size_t rope_dim() const { return 2 * half_dim_; }
  const float* cos(size_t position) const {  // [rope_dim / 2]
    return cos_.data() + position * half_dim_;
  }
  const float* sin(size_t position) const {
    return sin_.data() + position * half_dim_;
  }

 private:
  size_t half_dim_;
  size_t num_positions_;
  std::vector<float> cos_;
  std::vector<float> sin_;
};

// Rotates the first rope_dim elements of each head in place; the rest stay.
// heads: [num_heads, head_dim]. REQUIRES: position < table.num_positions().
void ApplyRope(const RopeTable& table, RopePairing pairing, size_t position,
               size_t num_heads, size_t head_dim, float* heads);

}  // namespace muster::kernels

#include "kernels/rope.h"

#include <cmath>

#include "base/check.h"

namespace muster::kernels {

RopeTable::RopeTable(std::vector<double> inv_freq, double magnitude,
                     size_t num_positions)
    : half_dim_(inv_freq.size()),
      num_positions_(num_positions),
      cos_(num_positions * half_dim_),
      sin_(num_positions * half_dim_) {
  for (size_t position = 0; position < num_positions; ++position) {
    for (size_t i = 0; i < half_dim_; ++i) {
      const double angle = static_cast<double>(position) * inv_freq[i];
      const size_t at = position * half_dim_ + i;
      cos_[at] = static_cast<float>(std::cos(angle) * magnitude);
      sin_[at] = static_cast<float>(std::sin(angle) * magnitude);
    }
  }
}

void ApplyRope(const RopeTable& table, RopePairing pairing, size_t position,
               size_t num_heads, size_t head_dim, float* heads) {
  CHECK_LT(position, table.num_positions());
  CHECK_LE(table.rope_dim(), head_dim);
  const size_t half = table.rope_dim() / 2;
  const float* cos = table.cos(position);
  const float* sin = table.sin(position);
  const bool halves = pairing == RopePairing::kHalves;
  for (size_t h = 0; h < num_heads; ++h) {
    float* head = heads + h * head_dim;
    for (size_t i = 0; i < half; ++i) {
      float& a = halves ? head[i] : head[2 * i];
      float& b = halves ? head[i + half] : head[2 * i + 1];
      const float turned = a * cos[i] - b * sin[i];
      b = b * cos[i] + a * sin[i];
      a = turned;
    }
  }
}

}  // namespace muster::kernels

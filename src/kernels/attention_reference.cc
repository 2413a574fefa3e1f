#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/attention.h"

namespace muster::kernels {

void AttentionReference(const float* q, const KvHeadView& kv,
                        PositionRange range, float scale, float* out) {
  const size_t dim = kv.head_dim;
  const size_t tile_bytes = KvTileBytes(kv.type, dim);
  std::vector<float> vector(dim);
  std::vector<double> weights;
  weights.reserve(range.end - range.begin);
  for (size_t p = range.begin; p < range.end; ++p) {
    LoadKey(kv.type, kv.keys + p / kKvTilePositions * tile_bytes, dim,
            p % kKvTilePositions, vector.data());
    double dot = 0;
    for (size_t i = 0; i < dim; ++i) dot += double{q[i]} * vector[i];
    weights.push_back(dot * scale);
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double sum = 0;
  for (double& w : weights) sum += w = std::exp(w - largest);
  std::vector<double> result(dim, 0.0);
  for (size_t p = range.begin; p < range.end; ++p) {
    LoadValue(kv.type, kv.values + p / kKvTilePositions * tile_bytes, dim,
              p % kKvTilePositions, vector.data());
    for (size_t i = 0; i < dim; ++i) {
      result[i] += weights[p - range.begin] / sum * vector[i];
    }
  }
  for (size_t i = 0; i < dim; ++i) out[i] = static_cast<float>(result[i]);
}

}  // namespace muster::kernels

#include "routing/tail.h"

#include <cstddef>
#include <numeric>

namespace muster::routing {

void FindTail(const Routing& routing, float weight,
              std::vector<uint8_t>* in_tail) {
  in_tail->assign(routing.weights.size(), 0);
  for (size_t t = 0; t < routing.num_tokens; ++t) {
    const size_t first = t * routing.top_k;
    const size_t end = first + routing.top_k;
    const float sum = std::accumulate(
        routing.weights.begin() + static_cast<ptrdiff_t>(first),
        routing.weights.begin() + static_cast<ptrdiff_t>(end), 0.0f);
    for (size_t slot = first + 1; slot < end; ++slot) {
      (*in_tail)[slot] = routing.weights[slot] < weight * sum;
    }
  }
}

}  // namespace muster::routing

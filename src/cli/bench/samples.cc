#include "cli/bench/samples.h"

#include <algorithm>

#include "base/check.h"

namespace muster::cli {

Spread SpreadOf(std::vector<double> samples) {
  CHECK(!samples.empty());
  std::sort(samples.begin(), samples.end());
  const size_t middle = samples.size() / 2;
  const double median = samples.size() % 2 == 1
                            ? samples[middle]
                            : (samples[middle - 1] + samples[middle]) / 2;
  return {median, samples.front(), samples.back()};
}

}  // namespace muster::cli

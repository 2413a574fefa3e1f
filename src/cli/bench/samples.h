// Repeated measurements of one quantity, and what to say about them.
#pragma once

#include <vector>

namespace muster::cli {

struct Spread {
  double median = 0;
  double least = 0;
  double most = 0;
};

// The middle value (the mean of the two middle ones) and the ends.
// REQUIRES: at least one sample.
Spread SpreadOf(std::vector<double> samples);

}  // namespace muster::cli

#include "telemetry/routing_stats.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace muster::telemetry {

RoutingStats::RoutingStats(std::vector<uint32_t> num_experts,
                           std::vector<uint32_t> top_k)
    : num_experts_(std::move(num_experts)), top_k_(std::move(top_k)) {
  CHECK_EQ(num_experts_.size(), top_k_.size());
  for (size_t layer = 0; layer < num_experts_.size(); ++layer) {
    const uint32_t n = num_experts_[layer];
    CHECK(n == 0 || (top_k_[layer] >= 1 && top_k_[layer] <= n));
  }
  Reset();
}

void RoutingStats::Reset() {
  counts_.clear();
  for (const uint32_t n : num_experts_) counts_.emplace_back(n, 0);
  last_step_ = counts_;
  steps_.assign(counts_.size(), 0);
  distinct_in_steps_ = steps_;
}

void RoutingStats::Record(uint32_t layer, std::span<const uint32_t> ids) {
  CHECK_LT(layer, counts_.size());
  CHECK_GT(num_experts_[layer], 0u);
  CHECK_EQ(ids.size() % top_k_[layer], 0u);
  if (ids.empty()) return;
  const uint64_t step = ++steps_[layer];
  for (const uint32_t id : ids) {
    CHECK_LT(id, num_experts_[layer]);
    ++counts_[layer][id];
    if (last_step_[layer][id] == step) continue;
    last_step_[layer][id] = step;
    ++distinct_in_steps_[layer];
  }
}

void RoutingStats::Merge(const RoutingStats& other) {
  CHECK(num_experts_ == other.num_experts_ && top_k_ == other.top_k_);
  for (size_t layer = 0; layer < counts_.size(); ++layer) {
    for (size_t e = 0; e < counts_[layer].size(); ++e) {
      counts_[layer][e] += other.counts_[layer][e];
    }
    steps_[layer] += other.steps_[layer];
    distinct_in_steps_[layer] += other.distinct_in_steps_[layer];
  }
}

uint64_t RoutingStats::tokens(size_t layer) const {
  if (num_experts_[layer] == 0) return 0;
  const auto& counts = counts_[layer];
  return std::accumulate(counts.begin(), counts.end(), uint64_t{0}) /
         top_k_[layer];
}

uint32_t RoutingStats::distinct(size_t layer) const {
  return static_cast<uint32_t>(
      std::count_if(counts_[layer].begin(), counts_[layer].end(),
                    [](uint64_t count) { return count != 0; }));
}

uint64_t RoutingStats::distinct_in_all() const {
  uint64_t sum = 0;
  for (size_t layer = 0; layer < counts_.size(); ++layer) {
    sum += distinct(layer);
  }
  return sum;
}

uint64_t RoutingStats::experts_in_all() const {
  return std::accumulate(num_experts_.begin(), num_experts_.end(), uint64_t{0});
}

double RoutingStats::MeanDistinctPerStep(size_t layer) const {
  if (steps_[layer] == 0) return 0;
  return static_cast<double>(distinct_in_steps_[layer]) /
         static_cast<double>(steps_[layer]);
}

std::vector<uint32_t> RoutingStats::Top(size_t layer, size_t n) const {
  const auto& counts = counts_[layer];
  std::vector<uint32_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return counts[a] > counts[b];
  });
  order.resize(std::min<size_t>(n, distinct(layer)));
  return order;
}

double RoutingStats::Balancedness() const {
  double sum = 0;
  size_t layers = 0;
  for (size_t layer = 0; layer < counts_.size(); ++layer) {
    if (tokens(layer) == 0) continue;
    const auto& counts = counts_[layer];
    const auto largest =
        static_cast<double>(*std::max_element(counts.begin(), counts.end()));
    const double mean = static_cast<double>(tokens(layer) * top_k_[layer]) /
                        static_cast<double>(counts.size());
    sum += mean / largest;
    ++layers;
  }
  return layers == 0 ? 0 : sum / static_cast<double>(layers);
}

}  // namespace muster::telemetry

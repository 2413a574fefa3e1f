#include "experts/prewarm.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace muster::experts {
namespace {

// Of each layer, the tokens that the uses are of.
std::vector<double> TokensOf(const ExpertTable& table,
                             std::span<const uint64_t> uses) {
  std::vector<double> tokens(table.num_layers());
  for (uint32_t expert = 0; expert < table.num_experts(); ++expert) {
    const uint32_t layer = table.IdOf(expert).layer;
    tokens[layer] +=
        static_cast<double>(uses[expert]) /
        static_cast<double>(std::max(1u, table.layer(layer).top_k));
  }
  return tokens;
}

}  // namespace

std::vector<uint32_t> ExpertsToPrewarm(const ExpertTable& table,
                                       const ExpertCache& cache,
                                       std::span<const uint64_t> uses) {
  std::vector<uint32_t> order(table.num_experts());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return uses[a] > uses[b]; });
  // Experts of one size share their room.
  std::vector<std::pair<size_t, size_t>> left_of_size;
  std::vector<uint32_t> chosen;
  for (const uint32_t expert : order) {
    if (uses[expert] == 0) break;
    if (cache.state(expert) != ExpertCache::State::kAbsent) continue;
    const size_t size_bytes = table.SizeBytes(expert);
    auto left = std::find_if(
        left_of_size.begin(), left_of_size.end(),
        [&](const auto& entry) { return entry.first == size_bytes; });
    if (left == left_of_size.end()) {
      left =
          left_of_size.insert(left, {size_bytes, cache.FreeSlotsFor(expert)});
    }
    if (left->second == 0) continue;
    --left->second;
    chosen.push_back(expert);
  }
  return chosen;
}

size_t Prewarm(std::span<const uint64_t> uses, ExpertTiers& tiers,
               ThreadPool& pool, PrewarmProgress* progress) {
  const ExpertTable& table = tiers.table();
  const std::vector<uint32_t> chosen =
      ExpertsToPrewarm(table, tiers.cache(), uses);
  if (progress != nullptr) {
    for (const uint32_t expert : chosen) {
      progress->total_bytes += table.SizeBytes(expert);
    }
  }
  tiers.Preload(chosen, pool,
                progress == nullptr ? nullptr : &progress->done_bytes);
  const std::vector<double> tokens = TokensOf(table, uses);
  size_t num_resident = 0;
  // The most used last: of equals, policies keep the one that was used last.
  for (auto it = chosen.rbegin(); it != chosen.rend(); ++it) {
    if (tiers.cache().state(*it) != ExpertCache::State::kResident) continue;
    ++num_resident;
    const double share =
        static_cast<double>(uses[*it]) / tokens[table.IdOf(*it).layer];
    const double as_if = std::min(kPrewarmTokens, share * kPrewarmTokens);
    tiers.Prime(*it, static_cast<uint32_t>(std::ceil(as_if)));
  }
  return num_resident;
}

}  // namespace muster::experts

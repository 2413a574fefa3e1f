#include "routing/cache_aware.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace muster::routing {
namespace {

// The experts that may be chosen at all, best first: as many as the rank
// allows, with scores that are neither normalised nor scaled.
RouterConfig Candidates(const RouterConfig& config, const CacheAware& aware) {
  const uint32_t max_rank =
      aware.max_rank == 0 ? 2 * config.top_k : aware.max_rank;
  return {.num_experts = config.num_experts,
          .top_k = std::clamp(max_rank, config.top_k, config.num_experts),
          .gating = config.gating};
}

// Which of a token's candidates are chosen, as flags by rank: the first
// top_k, but for those that give way.
class Choice {
 public:
  // Both by rank.
  Choice(std::span<const uint32_t> ids, std::span<const float> scores,
         std::span<const uint8_t> in_memory, float margin)
      : ids_(ids), scores_(scores), in_memory_(in_memory), margin_(margin) {}

  // Returns how many gave way.
  size_t Make(size_t top_k, std::vector<uint8_t>& chosen) const {
    chosen.assign(ids_.size(), 0);
    std::fill_n(chosen.begin(), top_k, uint8_t{1});
    size_t num_replaced = 0;
    size_t stand_in = NextInMemory(top_k);
    for (size_t rank = 1; rank < top_k; ++rank) {
      if (stand_in == ids_.size()) break;
      if (in_memory_[ids_[rank]] || !NearlyAsGood(stand_in, rank)) continue;
      chosen[rank] = 0;
      chosen[stand_in] = 1;
      ++num_replaced;
      stand_in = NextInMemory(stand_in + 1);
    }
    return num_replaced;
  }

 private:
  size_t NextInMemory(size_t rank) const {
    while (rank < ids_.size() && !in_memory_[ids_[rank]]) ++rank;
    return rank;
  }
  bool NearlyAsGood(size_t rank, size_t than) const {
    return scores_[rank] >= (1 - margin_) * scores_[than];
  }

  std::span<const uint32_t> ids_;
  std::span<const float> scores_;
  std::span<const uint8_t> in_memory_;
  float margin_;
};

}  // namespace

size_t RouteCacheAware(const RouterConfig& config, const CacheAware& aware,
                       const float* logits, std::span<const uint8_t> in_memory,
                       size_t num_tokens, Routing* out) {
  CHECK_EQ(in_memory.size(), config.num_experts);
  const size_t top_k = config.top_k;
  Routing candidates;
  Route(Candidates(config, aware), logits, nullptr, num_tokens, &candidates);
  out->num_tokens = num_tokens;
  out->top_k = top_k;
  out->ids.clear();
  out->weights.clear();
  size_t num_replaced = 0;
  std::vector<uint8_t> chosen;
  for (size_t t = 0; t < num_tokens; ++t) {
    const size_t first = t * candidates.top_k;
    const auto ids = std::span(candidates.ids).subspan(first, candidates.top_k);
    const auto scores =
        std::span(candidates.weights).subspan(first, candidates.top_k);
    const Choice choice(ids, scores, in_memory, aware.margin);
    num_replaced += choice.Make(top_k, chosen);
    for (size_t rank = 0; rank < ids.size(); ++rank) {
      if (!chosen[rank]) continue;
      out->ids.push_back(ids[rank]);
      out->weights.push_back(scores[rank]);
    }
    ScoresToWeights(config, std::span(out->weights).subspan(t * top_k));
  }
  return num_replaced;
}

}  // namespace muster::routing

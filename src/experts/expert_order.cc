#include "experts/expert_order.h"

#include <fmt/format.h>

#include <fstream>
#include <numeric>
#include <span>

#include "experts/routing_trace.h"

namespace muster::experts {
namespace {

constexpr size_t kNear = 8;  // experts back in the chain that still count

// How often the experts of one layer were taken, alone and in pairs.
class Companions {
 public:
  explicit Companions(size_t num_experts)
      : num_experts_(num_experts), together_(num_experts * num_experts) {}

  void Add(std::span<const uint32_t> experts) {
    for (const uint32_t a : experts) {
      for (const uint32_t b : experts) ++together_[a * num_experts_ + b];
    }
  }

  std::vector<uint32_t> Chain() const {
    std::vector<uint32_t> chain;
    std::vector<bool> placed(num_experts_, false);
    std::vector<uint64_t> near(num_experts_, 0);
    while (chain.size() < num_experts_) {
      const uint32_t next = Best(placed, near);
      placed[next] = true;
      chain.push_back(next);
      for (size_t e = 0; e < num_experts_; ++e) {
        near[e] += Together(next, e);
        if (chain.size() > kNear) {
          near[e] -= Together(chain[chain.size() - 1 - kNear], e);
        }
      }
    }
    return chain;
  }

 private:
  // With itself: how often it was taken at all.
  uint64_t Together(size_t a, size_t b) const {
    return together_[a * num_experts_ + b];
  }

  uint32_t Best(const std::vector<bool>& placed,
                const std::vector<uint64_t>& near) const {
    size_t best = num_experts_;
    for (size_t e = 0; e < num_experts_; ++e) {
      if (placed[e]) continue;
      if (best == num_experts_ || near[e] > near[best] ||
          (near[e] == near[best] && Together(e, e) > Together(best, best))) {
        best = e;
      }
    }
    return static_cast<uint32_t>(best);
  }

  const size_t num_experts_;
  std::vector<uint64_t> together_;  // [num_experts, num_experts]
};

Status CheckToken(const TokenRouting& token, const model::ModelConfig& config,
                  const std::string& path) {
  const auto other_model = [&](const std::string& what) {
    return InvalidArgument(
        fmt::format("{}: the trace is of another model: token {} {}", path,
                    token.token, what));
  };
  if (token.num_layers() != config.layers.size()) {
    return other_model(fmt::format("has {} layers, and the model {}",
                                   token.num_layers(), config.layers.size()));
  }
  for (size_t l = 0; l < config.layers.size(); ++l) {
    const size_t num_experts =
        config.layers[l].is_moe ? config.layers[l].router.num_experts : 0;
    for (const uint32_t id : token.Experts(l)) {
      if (id >= num_experts) {
        return other_model(fmt::format(
            "took expert {} of layer {}, which has {}", id, l, num_experts));
      }
    }
  }
  return {};
}

}  // namespace

ExpertOrder OrderByIndex(const model::ModelConfig& config) {
  ExpertOrder order(config.layers.size());
  for (size_t l = 0; l < order.size(); ++l) {
    if (!config.layers[l].is_moe) continue;
    order[l].resize(config.layers[l].router.num_experts);
    std::iota(order[l].begin(), order[l].end(), 0u);
  }
  return order;
}

Result<ExpertOrder> OrderByTrace(const std::string& path,
                                 const model::ModelConfig& config) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return NotFound(fmt::format("{}: cannot be opened", path));
  std::vector<Companions> layers;
  for (const model::LayerConfig& layer : config.layers) {
    layers.emplace_back(layer.is_moe ? layer.router.num_experts : 0);
  }
  TraceReader reader(in, path);
  TokenRouting token;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next(&token));
    if (!more) break;
    RETURN_IF_ERROR(CheckToken(token, config, path));
    for (size_t l = 0; l < layers.size(); ++l) layers[l].Add(token.Experts(l));
  }
  ExpertOrder order;
  for (const Companions& layer : layers) order.push_back(layer.Chain());
  return order;
}

}  // namespace muster::experts

#include "experts/packed_model.h"

#include <fmt/format.h>

#include "experts/source_expert.h"

namespace muster::experts {

Status CheckPackFits(const formats::ExpertPack& pack,
                     const model::WeightIndex& index,
                     const model::ModelConfig& config,
                     const std::string& path) {
  const auto wrong = [&](const std::string& what) {
    return Corrupt(fmt::format("{}: {}: pack the model again", path, what));
  };
  ASSIGN_OR_RETURN(const auto layouts, LayoutsOf(index, config));
  if (pack.layers.size() != layouts.size()) {
    return wrong(
        fmt::format("the pack has experts of {} layers, and the model "
                    "{} layers",
                    pack.layers.size(), layouts.size()));
  }
  for (size_t l = 0; l < layouts.size(); ++l) {
    const size_t expected =
        config.layers[l].is_moe ? index.layers[l].experts.size() : 0;
    if (pack.layers[l].experts.size() != expected) {
      return wrong(
          fmt::format("the pack has {} experts of layer {}, expected "
                      "{}",
                      pack.layers[l].experts.size(), l, expected));
    }
    if (expected != 0 && !(pack.layers[l].layout == layouts[l])) {
      return wrong(fmt::format(
          "experts of layer {} have another shape or type than the model says",
          l));
    }
  }
  return {};
}

}  // namespace muster::experts

// A pack and the model that its description promises.
#pragma once

#include <string>

#include "base/status.h"
#include "formats/expert_pack.h"
#include "model/config.h"
#include "model/weight_index.h"

namespace muster::experts {

// Fails with kCorrupt unless the pack holds each routed expert of the model in
// the layout that its tensors' types and shapes ask for. Whoever reads experts
// by their layout calls it first. `path` is for the message.
Status CheckPackFits(const formats::ExpertPack& pack,
                     const model::WeightIndex& index,
                     const model::ModelConfig& config, const std::string& path);

}  // namespace muster::experts

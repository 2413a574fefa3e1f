// In which order a layer's experts stand in a pack: those that tokens take
// together next to each other, so that a step's reads are near one another.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "model/config.h"

namespace muster::experts {

// Of each layer, [num_layers][num_experts] indices, each once; none for a dense
// layer.
using ExpertOrder = std::vector<std::vector<uint32_t>>;

// By index.
ExpertOrder OrderByIndex(const model::ModelConfig& config);

// By a recorded trace (routing_trace.h). Per layer a chain is grown: first the
// expert that most tokens took; then always the one that was taken most often
// together with the last 8 of the chain (how often: the number of tokens that
// took both, added up), ties going to the one taken more often and then to the
// lower index. Blocks. Fails with kInvalidArgument on a trace of another model.
Result<ExpertOrder> OrderByTrace(const std::string& path,
                                 const model::ModelConfig& config);

}  // namespace muster::experts

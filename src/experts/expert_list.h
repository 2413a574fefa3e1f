// A list of experts as people write it: "3:17,3:20,5:*" is experts 17 and 20 of
// layer 3 and all of layer 5.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "experts/expert_table.h"

namespace muster::experts {

// The experts' numbers in `table`, ascending, each once. Commas, spaces and
// ends of lines separate; '#' begins a comment that ends with its line. Fails
// with kInvalidArgument, naming the item, on one that is no LAYER:EXPERT or
// LAYER:*, or that the model does not have.
Result<std::vector<uint32_t>> ParseExpertList(std::string_view text,
                                              const ExpertTable& table);

}  // namespace muster::experts

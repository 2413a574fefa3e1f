// What `muster eval --cache-aware` and `--tail` say: the price beside exact
// routing.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/routing_price.h"

namespace muster::cli {

// For people; several lines. `name` of what is priced: "tail"; `num_bytes`: of
// the text.
std::string RoutingPriceText(const runtime::RoutingPrice& price,
                             const std::string& name, size_t num_bytes);

nlohmann::ordered_json RoutingPriceJson(const runtime::RoutingPrice& price,
                                        size_t num_bytes);

}  // namespace muster::cli

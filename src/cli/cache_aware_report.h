// What `muster eval --cache-aware` says: the price beside exact routing.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

#include "runtime/cache_aware_price.h"

namespace muster::cli {

// For people; several lines. `num_bytes`: of the text.
std::string CacheAwareText(const runtime::CacheAwarePrice& price,
                           size_t num_bytes);

nlohmann::ordered_json CacheAwareJson(const runtime::CacheAwarePrice& price,
                                      size_t num_bytes);

}  // namespace muster::cli

// What experts in tiers cost a run: hits, bytes, waiting.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/report.h"
#include "runtime/engine.h"

namespace muster::cli {

// For people; nothing when all experts are in memory.
std::string TierText(const runtime::Engine& engine, const RunSpeeds& speeds);

// null when all experts are in memory.
nlohmann::ordered_json TierJson(const runtime::Engine& engine,
                                const RunSpeeds& speeds);

}  // namespace muster::cli

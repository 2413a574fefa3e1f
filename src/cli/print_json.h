// JSON on standard output, as every command prints it.
#pragma once

#include <nlohmann/json.hpp>

namespace muster::cli {

// Indented, with a line's end; bytes that are no UTF-8 become U+FFFD.
void PrintJson(const nlohmann::ordered_json& json);

}  // namespace muster::cli

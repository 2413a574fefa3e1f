#include "cli/print_json.h"

#include <fmt/format.h>

namespace muster::cli {

void PrintJson(const nlohmann::ordered_json& json) {
  fmt::print("{}\n", json.dump(2, ' ', false,
                               nlohmann::json::error_handler_t::replace));
}

}  // namespace muster::cli

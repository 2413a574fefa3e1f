#include "model/json.h"

namespace muster::model {

using nlohmann::json;

Result<json> ParseJsonObject(std::string_view text, std::string_view what) {
  constexpr int kMaxDepth = 64;
  bool too_deep = false;
  const auto watch_depth = [&](int depth, json::parse_event_t, json&) {
    too_deep |= depth > kMaxDepth;
    return !too_deep;  // what is too deep is dropped, not built
  };
  json root = json::parse(text, watch_depth, /*allow_exceptions=*/false);
  if (too_deep) {
    return Corrupt(fmt::format("{} is nested deeper than {}", what, kMaxDepth));
  }
  if (root.is_discarded()) {
    return Corrupt(fmt::format("{} is not valid JSON", what));
  }
  if (!root.is_object()) {
    return Corrupt(fmt::format("{} holds a {}, expected an object", what,
                               root.type_name()));
  }
  return root;
}

}  // namespace muster::model

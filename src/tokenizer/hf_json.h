// Reading JSON objects with answers that say where and what. For the files of
// this folder only.
#pragma once

#include <simdjson.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::tokenizer {

using JsonElement = simdjson::dom::element;
using JsonObject = simdjson::dom::object;
using JsonArray = simdjson::dom::array;

// A member that is null counts as absent.
std::optional<JsonElement> FindMember(JsonObject object, std::string_view key);

// nullopt, false or an empty array where the member is absent. kCorrupt where
// it is of another type. Strings live as long as the parser.
Result<std::optional<std::string_view>> StringMember(JsonObject object,
                                                     std::string_view key);
Result<bool> BoolMember(JsonObject object, std::string_view key,
                        bool otherwise);
Result<JsonArray> ArrayMember(JsonObject object, std::string_view key);

// The member "type", needed.
Result<std::string_view> TypeOf(JsonObject object);

Result<JsonObject> AsObject(JsonElement element, std::string_view what);

}  // namespace muster::tokenizer

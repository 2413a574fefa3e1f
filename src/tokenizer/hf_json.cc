#include "tokenizer/hf_json.h"

#include <fmt/format.h>

namespace muster::tokenizer {
namespace {

Status WrongType(std::string_view key, std::string_view expected) {
  return Corrupt(fmt::format("'{}' is not {}", key, expected));
}

}  // namespace

std::optional<JsonElement> FindMember(JsonObject object, std::string_view key) {
  JsonElement element;
  if (object.at_key(key).get(element) != simdjson::SUCCESS) return std::nullopt;
  if (element.is_null()) return std::nullopt;
  return element;
}

Result<std::optional<std::string_view>> StringMember(JsonObject object,
                                                     std::string_view key) {
  const auto member = FindMember(object, key);
  if (!member) return std::optional<std::string_view>();
  std::string_view value;
  if (member->get(value) != simdjson::SUCCESS)
    return WrongType(key, "a string");
  return std::optional(value);
}

Result<bool> BoolMember(JsonObject object, std::string_view key,
                        bool otherwise) {
  const auto member = FindMember(object, key);
  if (!member) return otherwise;
  bool value = false;
  if (member->get(value) != simdjson::SUCCESS) {
    return WrongType(key, "true or false");
  }
  return value;
}

Result<JsonArray> ArrayMember(JsonObject object, std::string_view key) {
  const auto member = FindMember(object, key);
  JsonArray value;
  if (!member || member->get(value) != simdjson::SUCCESS) {
    return WrongType(key, "an array");
  }
  return value;
}

Result<std::string_view> TypeOf(JsonObject object) {
  ASSIGN_OR_RETURN(const auto type, StringMember(object, "type"));
  if (!type) return Corrupt("a component has no 'type'");
  return *type;
}

Result<JsonObject> AsObject(JsonElement element, std::string_view what) {
  JsonObject object;
  if (element.get(object) != simdjson::SUCCESS) {
    return WrongType(what, "an object");
  }
  return object;
}

}  // namespace muster::tokenizer

// A JSON document from a stranger, with its depth capped.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

namespace muster::model {

// Fails with kCorrupt on malformed text, on anything nested deeper than 64, and
// when the document is not an object. `what` names it in the message.
Result<nlohmann::json> ParseJsonObject(std::string_view text,
                                       std::string_view what);

// The value of `key` if it is there and not null; T is uint64_t, double, bool
// or std::string. Fails when it has another type.
template <class T>
Result<std::optional<T>> Get(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::optional<T>();
  bool fits;
  const char* expected;
  if constexpr (std::is_same_v<T, bool>) {
    fits = found->is_boolean();
    expected = "true or false";
  } else if constexpr (std::is_same_v<T, std::string>) {
    fits = found->is_string();
    expected = "a string";
  } else if constexpr (std::is_same_v<T, double>) {
    fits = found->is_number();
    expected = "a number";
  } else {
    static_assert(std::is_same_v<T, uint64_t>);
    fits = found->is_number_unsigned();
    expected = "a whole number, not negative";
  }
  if (fits) return std::optional<T>(found->get<T>());
  return Corrupt(fmt::format("'{}' is of type {}, expected {}", key,
                             found->type_name(), expected));
}

}  // namespace muster::model

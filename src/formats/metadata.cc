#include "formats/metadata.h"

#include <fmt/format.h>

#include <array>

namespace muster::formats {
namespace {

const char* TypeName(const MetadataValue& value) {
  static constexpr std::array<const char*, 10> kNames = {"an unsigned integer",
                                                         "a negative integer",
                                                         "a number",
                                                         "true or false",
                                                         "a string",
                                                         "an array of integers",
                                                         "an array of integers",
                                                         "an array of numbers",
                                                         "an array of booleans",
                                                         "an array of strings"};
  static_assert(std::variant_size_v<MetadataValue> == kNames.size());
  return kNames[value.index()];
}

Status WrongType(std::string_view key, const MetadataValue& found,
                 const char* expected) {
  return Corrupt(fmt::format("key '{}' holds {}, expected {}", key,
                             TypeName(found), expected));
}

}  // namespace

Status Metadata::Add(std::string key, MetadataValue value) {
  if (key.empty()) return Corrupt("a key is empty");
  const auto [it, is_new] = values_.emplace(std::move(key), std::move(value));
  if (!is_new) {
    return Corrupt(fmt::format("key '{}' stands there twice", it->first));
  }
  keys_.push_back(it->first);
  return {};
}

const MetadataValue* Metadata::Find(std::string_view key) const {
  const auto it = values_.find(std::string(key));
  return it == values_.end() ? nullptr : &it->second;
}

Result<std::optional<uint64_t>> Metadata::GetUint(std::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return std::optional<uint64_t>();
  if (const auto* n = std::get_if<uint64_t>(value)) return std::optional(*n);
  return WrongType(key, *value, "an unsigned integer");
}

Result<std::optional<double>> Metadata::GetDouble(std::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return std::optional<double>();
  if (const auto* x = std::get_if<double>(value)) return std::optional(*x);
  if (const auto* n = std::get_if<uint64_t>(value)) {
    return std::optional(static_cast<double>(*n));
  }
  if (const auto* n = std::get_if<int64_t>(value)) {
    return std::optional(static_cast<double>(*n));
  }
  return WrongType(key, *value, "a number");
}

Result<std::optional<bool>> Metadata::GetBool(std::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return std::optional<bool>();
  if (const auto* b = std::get_if<bool>(value)) return std::optional(*b);
  return WrongType(key, *value, "true or false");
}

Result<std::optional<std::string>> Metadata::GetString(
    std::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return std::optional<std::string>();
  if (const auto* s = std::get_if<std::string>(value)) return std::optional(*s);
  return WrongType(key, *value, "a string");
}

Result<std::optional<std::vector<uint64_t>>> Metadata::GetUints(
    std::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return std::optional<std::vector<uint64_t>>();
  if (const auto* a = std::get_if<std::vector<uint64_t>>(value)) {
    return std::optional(*a);
  }
  if (const auto* a = std::get_if<std::vector<int64_t>>(value)) {
    std::vector<uint64_t> out;
    for (const int64_t n : *a) {
      if (n < 0) {
        return Corrupt(
            fmt::format("key '{}' holds {}, expected no negative "
                        "number",
                        key, n));
      }
      out.push_back(static_cast<uint64_t>(n));
    }
    return std::optional(std::move(out));
  }
  return WrongType(key, *value, "an array of unsigned integers");
}

Result<std::optional<std::vector<int64_t>>> Metadata::GetInts(
    std::string_view key) const {
  const MetadataValue* value = Find(key);
  if (value == nullptr) return std::optional<std::vector<int64_t>>();
  if (const auto* a = std::get_if<std::vector<int64_t>>(value)) {
    return std::optional(*a);
  }
  if (const auto* a = std::get_if<std::vector<uint64_t>>(value)) {
    std::vector<int64_t> out;
    for (const uint64_t n : *a) {
      if (n > INT64_MAX) {
        return Corrupt(
            fmt::format("key '{}' holds {}, which is too large", key, n));
      }
      out.push_back(static_cast<int64_t>(n));
    }
    return std::optional(std::move(out));
  }
  return WrongType(key, *value, "an array of integers");
}

Result<const std::vector<std::string>*> Metadata::GetStrings(
    std::string_view key) const {
  using Strings = std::vector<std::string>;
  const MetadataValue* value = Find(key);
  if (value == nullptr) return static_cast<const Strings*>(nullptr);
  if (const auto* a = std::get_if<Strings>(value)) return a;
  return WrongType(key, *value, "an array of strings");
}

Result<const std::vector<double>*> Metadata::GetDoubles(
    std::string_view key) const {
  using Doubles = std::vector<double>;
  const MetadataValue* value = Find(key);
  if (value == nullptr) return static_cast<const Doubles*>(nullptr);
  if (const auto* a = std::get_if<Doubles>(value)) return a;
  return WrongType(key, *value, "an array of numbers");
}

}  // namespace muster::formats

// The key-value part of a GGUF file, typed as the file types it.
// Source: the GGUF specification (docs/gguf.md of ggml).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/status.h"

namespace muster::formats {

// Arrays keep one vector per element class; integers of all widths are widened.
// Nested arrays (allowed by the specification, used by nobody) are refused by
// the reader.
using MetadataValue = std::variant<uint64_t, int64_t, double, bool, std::string,
                                   std::vector<uint64_t>, std::vector<int64_t>,
                                   std::vector<double>, std::vector<bool>,
                                   std::vector<std::string>>;

// Immutable after reading; reads are thread-safe.
class Metadata {
 public:
  // Fails with kCorrupt when `key` is empty or there already (CASES G02, G09).
  Status Add(std::string key, MetadataValue value);

  const MetadataValue* Find(std::string_view key) const;
  bool Has(std::string_view key) const { return Find(key) != nullptr; }
  const std::vector<std::string>& keys() const { return keys_; }  // file order

  // nullopt: absent. A value of another type is an error that names the key,
  // the type found and the type expected. Integers of either sign serve where
  // the value fits; an integer serves as a double.
  Result<std::optional<uint64_t>> GetUint(std::string_view key) const;
  Result<std::optional<double>> GetDouble(std::string_view key) const;
  Result<std::optional<bool>> GetBool(std::string_view key) const;
  Result<std::optional<std::string>> GetString(std::string_view key) const;
  // A scalar is an error here too: see the callers that accept both.
  Result<std::optional<std::vector<uint64_t>>> GetUints(
      std::string_view key) const;
  // Borrowed (a vocabulary is large): valid while this object lives.
  // nullptr: absent.
  Result<const std::vector<std::string>*> GetStrings(
      std::string_view key) const;
  Result<const std::vector<double>*> GetDoubles(std::string_view key) const;
  Result<std::optional<std::vector<int64_t>>> GetInts(
      std::string_view key) const;

 private:
  std::vector<std::string> keys_;
  std::unordered_map<std::string, MetadataValue> values_;
};

}  // namespace muster::formats

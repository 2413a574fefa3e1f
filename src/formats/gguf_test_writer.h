// Writes small GGUF files for tests, byte by byte, right or wrong.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

namespace muster::formats {

class GgufTestWriter {
 public:
  // Header with the counts that the test wants, true or not.
  GgufTestWriter& Header(uint64_t num_tensors, uint64_t num_keys,
                         uint32_t version = 3) {
    return Raw("GGUF").U32(version).U64(num_tensors).U64(num_keys);
  }
  GgufTestWriter& Raw(std::string_view bytes) {
    bytes_ += bytes;
    return *this;
  }
  template <class T>
  GgufTestWriter& Number(T value) {
    return Raw({reinterpret_cast<const char*>(&value), sizeof(value)});
  }
  GgufTestWriter& U32(uint32_t value) { return Number(value); }
  GgufTestWriter& U64(uint64_t value) { return Number(value); }
  GgufTestWriter& String(std::string_view text) {
    return U64(text.size()).Raw(text);
  }
  GgufTestWriter& KeyU32(std::string_view key, uint32_t value) {
    return String(key).U32(4).U32(value);
  }
  GgufTestWriter& KeyU16(std::string_view key, uint16_t value) {
    return String(key).U32(2).Number(value);
  }
  GgufTestWriter& KeyString(std::string_view key, std::string_view value) {
    return String(key).U32(8).String(value);
  }
  // Dimensions as GGUF stores them, the fastest first.
  GgufTestWriter& Tensor(std::string_view name,
                         std::initializer_list<uint64_t> dims, uint32_t type,
                         uint64_t offset) {
    String(name).U32(static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) U64(dim);
    return U32(type).U64(offset);
  }
  GgufTestWriter& Align(size_t alignment = 32) {
    while (bytes_.size() % alignment != 0) bytes_ += '\0';
    return *this;
  }
  GgufTestWriter& Data(size_t size_bytes) {
    return Raw(std::string(size_bytes, '\1'));
  }

  const std::string& bytes() const { return bytes_; }
  void WriteTo(const std::string& path) const {
    std::ofstream(path, std::ios::binary) << bytes_;
  }

 private:
  std::string bytes_;
};

}  // namespace muster::formats

// XXH3-128: what tells whether bytes are still the ones that were written. Not
// against someone who changes them on purpose (sha256.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace muster {

struct Checksum {
  uint64_t high = 0;
  uint64_t low = 0;
  bool operator==(const Checksum&) const = default;
};

Checksum ChecksumOf(std::span<const std::byte> bytes);
Checksum ChecksumOf(std::string_view text);

// 32 hexadecimal digits, lower case, the most significant first: the canonical
// form, as `xxhsum -H128` prints it.
std::string ToHex(const Checksum& checksum);
std::optional<Checksum> ChecksumFromHex(std::string_view hex);

// The same of bytes that come in pieces.
class ChecksumStream {
 public:
  ChecksumStream();
  ~ChecksumStream();
  ChecksumStream(ChecksumStream&&) noexcept;
  ChecksumStream& operator=(ChecksumStream&&) noexcept;
  void Update(std::span<const std::byte> bytes);
  // Of all bytes so far.
  Checksum Get() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster

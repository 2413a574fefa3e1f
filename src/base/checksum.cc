#include "base/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>
// Chooses the widest vectors at run time; after xxhash.h, whose names it takes.
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#endif

#include "base/check.h"

namespace muster {
namespace {

Checksum FromHash(XXH128_hash_t hash) {
  return {.high = hash.high64, .low = hash.low64};
}

std::optional<uint64_t> ParseHex16(std::string_view hex) {
  uint64_t value = 0;
  for (const char c : hex) {
    if (c >= '0' && c <= '9') {
      value = value << 4 | static_cast<uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = value << 4 | static_cast<uint64_t>(c - 'a' + 10);
    } else {
      return std::nullopt;
    }
  }
  return value;
}

}  // namespace

Checksum ChecksumOf(std::span<const std::byte> bytes) {
  return FromHash(XXH3_128bits(bytes.data(), bytes.size()));
}

Checksum ChecksumOf(std::string_view text) {
  return ChecksumOf(std::as_bytes(std::span(text)));
}

std::string ToHex(const Checksum& checksum) {
  return fmt::format("{:016x}{:016x}", checksum.high, checksum.low);
}

std::optional<Checksum> ChecksumFromHex(std::string_view hex) {
  if (hex.size() != 32) return std::nullopt;
  const auto high = ParseHex16(hex.substr(0, 16));
  const auto low = ParseHex16(hex.substr(16));
  if (!high || !low) return std::nullopt;
  return Checksum{.high = *high, .low = *low};
}

struct ChecksumStream::State {
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> xxh{XXH3_createState()};
};

ChecksumStream::ChecksumStream() : state_(std::make_unique<State>()) {
  CHECK(state_->xxh != nullptr);
  XXH3_128bits_reset(state_->xxh.get());
}
ChecksumStream::~ChecksumStream() = default;
ChecksumStream::ChecksumStream(ChecksumStream&&) noexcept = default;
ChecksumStream& ChecksumStream::operator=(ChecksumStream&&) noexcept = default;

void ChecksumStream::Update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_->xxh.get(), bytes.data(), bytes.size());
}

Checksum ChecksumStream::Get() const {
  return FromHash(XXH3_128bits_digest(state_->xxh.get()));
}

}  // namespace muster

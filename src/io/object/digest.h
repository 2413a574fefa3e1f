// HMAC of SHA-256 and the encodings that signatures use.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/sha256.h"
#include "base/status.h"

namespace muster::io {

Sha256Digest HmacSha256(std::string_view key, std::string_view text);

// The same bytes as a string, as the next HMAC's key.
std::string AsString(const Sha256Digest& digest);

std::string Base64(std::span<const std::byte> bytes);
// Fails with kInvalidArgument, without repeating `text`: it may be a key.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace muster::io

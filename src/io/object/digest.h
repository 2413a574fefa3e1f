// SHA-256, HMAC and the encodings that signatures use.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

struct evp_md_ctx_st;

namespace muster::io {

using Sha256Digest = std::array<std::byte, 32>;

// Of bytes that come in pieces. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Add(std::span<const std::byte> bytes);
  // REQUIRES: called once, last.
  Sha256Digest Finish();

 private:
  evp_md_ctx_st* context_;
};

Sha256Digest Sha256Of(std::string_view text);
Sha256Digest HmacSha256(std::string_view key, std::string_view text);

// The same bytes as a string, as the next HMAC's key.
std::string AsString(const Sha256Digest& digest);

std::string Hex(std::span<const std::byte> bytes);  // lower case
std::string Base64(std::span<const std::byte> bytes);
// Fails with kInvalidArgument, without repeating `text`: it may be a key.
Result<std::string> DecodeBase64(std::string_view text);

}  // namespace muster::io

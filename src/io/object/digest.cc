#include "io/object/digest.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/check.h"

namespace muster::io {
namespace {

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Sha256Digest HmacSha256(std::string_view key, std::string_view text) {
  Sha256Digest digest;
  unsigned int size = 0;
  CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
             Bytes(text), text.size(),
             reinterpret_cast<unsigned char*>(digest.data()),
             &size) != nullptr);
  CHECK_EQ(size, digest.size());
  return digest;
}

std::string AsString(const Sha256Digest& digest) {
  return std::string(reinterpret_cast<const char*>(digest.data()),
                     digest.size());
}

std::string Base64(std::span<const std::byte> bytes) {
  // EVP_EncodeBlock ends its text with a NUL.
  std::string out((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  out.resize(static_cast<size_t>(size));
  return out;
}

Result<std::string> DecodeBase64(std::string_view text) {
  std::string out(text.size() / 4 * 3, '\0');
  const int size =
      text.size() % 4 == 0 && !text.empty()
          ? EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                            Bytes(text), static_cast<int>(text.size()))
          : -1;
  if (size < 0) return InvalidArgument("not base64");
  // EVP_DecodeBlock counts the padding as bytes.
  const size_t padding = text.size() - 1 - text.find_last_not_of('=');
  if (padding > 2) return InvalidArgument("not base64");
  out.resize(static_cast<size_t>(size) - padding);
  return out;
}

}  // namespace muster::io

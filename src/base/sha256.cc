#include "base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <iterator>

#include "base/check.h"

namespace muster {

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* held) const { EVP_MD_CTX_free(held); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  CHECK(state_->context != nullptr);
  CHECK_EQ(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr), 1);
}
Sha256::~Sha256() = default;

void Sha256::Update(std::span<const std::byte> bytes) {
  CHECK_EQ(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()),
           1);
}

Sha256Digest Sha256::Finish() {
  Sha256Digest digest;
  unsigned int size = 0;
  CHECK_EQ(EVP_DigestFinal_ex(state_->context.get(),
                              reinterpret_cast<unsigned char*>(digest.data()),
                              &size),
           1);
  CHECK_EQ(size, digest.size());
  return digest;
}

Sha256Digest Sha256Of(std::string_view text) {
  Sha256 sha;
  sha.Update(std::as_bytes(std::span(text)));
  return sha.Finish();
}

std::string Hex(std::span<const std::byte> bytes) {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    fmt::format_to(std::back_inserter(hex), "{:02x}",
                   static_cast<unsigned>(byte));
  }
  return hex;
}

}  // namespace muster

#include "base/sha256.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/check.h"

namespace muster {

struct Sha256::State {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
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

std::string Sha256::Finish() {
  std::array<unsigned char, 32> digest;
  unsigned int size = 0;
  CHECK_EQ(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size), 1);
  CHECK_EQ(size, digest.size());
  std::string hex;
  for (const unsigned char byte : digest) hex += fmt::format("{:02x}", byte);
  return hex;
}

}  // namespace muster

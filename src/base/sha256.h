// SHA-256: names a file's content to the world.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace muster {

using Sha256Digest = std::array<std::byte, 32>;

// Of bytes that come in pieces. Not thread-safe.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::span<const std::byte> bytes);
  // Of all bytes. REQUIRES: called once, last.
  Sha256Digest Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

Sha256Digest Sha256Of(std::string_view text);

// Two hexadecimal digits a byte, lower case.
std::string Hex(std::span<const std::byte> bytes);

}  // namespace muster

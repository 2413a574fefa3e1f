// SHA-256 of bytes that come in pieces: names a file's content to the world.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace muster {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Update(std::span<const std::byte> bytes);
  // Of all bytes: 64 hexadecimal digits, lower case. Ends it: call once, last.
  std::string Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace muster

// Unsigned arithmetic on numbers that a file or a peer gave us: overflow is an
// answer (std::nullopt), never a wrapped value.
#pragma once

#include <cstdint>
#include <optional>

namespace muster {

inline std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

inline std::optional<uint64_t> CheckedMul(uint64_t a, uint64_t b) {
  uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// The smallest multiple of `alignment` that is at least `n`.
// REQUIRES: alignment is a power of two.
inline std::optional<uint64_t> CheckedAlignUp(uint64_t n, uint64_t alignment) {
  const auto sum = CheckedAdd(n, alignment - 1);
  if (!sum) return std::nullopt;
  return *sum & ~(alignment - 1);
}

}  // namespace muster

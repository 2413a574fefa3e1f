// Asks for memory that attention reads next, a block ahead: from DRAM it comes
// at the rate at which the sums run, and a core's own prefetchers lose their
// thread at every page.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_tiles.h"

namespace muster::kernels {

// Brings elements [first, first + count) from `from` on into the second-level
// cache. Any address will do: a bad one is ignored.
template <KvType kType>
inline void FetchAhead(const std::byte* from, size_t first, size_t count) {
  constexpr size_t kLineBytes = 64;
  constexpr size_t kBytes = kType == KvType::kF32   ? sizeof(float)
                            : kType == KvType::kF16 ? sizeof(uint16_t)
                                                    : sizeof(int8_t);
  for (size_t at = 0; at < count * kBytes; at += kLineBytes) {
    __builtin_prefetch(from + first * kBytes + at, 0, 2);
  }
}

}  // namespace muster::kernels

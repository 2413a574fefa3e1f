// Asks for the memory of a cache's tiles a little before attention reads it, in
// the order in which it lies. Into the first-level cache: prefetches into the
// second level alone are dropped by Zen 4 when the page is not at hand.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kv_tiles.h"

namespace muster::kernels {

template <KvType kType>
inline constexpr size_t kKvElementBytes = kType == KvType::kF32 ? sizeof(float)
                                          : kType == KvType::kF16
                                              ? sizeof(uint16_t)
                                              : sizeof(int8_t);

// The latency of DRAM at the rate at which a core reads.
inline constexpr size_t kKvReadAheadBytes = 4096;

// For elements [first, first + count) of a tile: what lies so far behind them.
// Behind the last tile that is any address; a bad one is ignored.
template <KvType kType>
inline void ReadAhead(const std::byte* tile, size_t first, size_t count) {
  constexpr size_t kLineBytes = 64;
  const std::byte* ahead =
      tile + first * kKvElementBytes<kType> + kKvReadAheadBytes;
  for (size_t at = 0; at < count * kKvElementBytes<kType>; at += kLineBytes) {
    __builtin_prefetch(ahead + at);
  }
}

}  // namespace muster::kernels

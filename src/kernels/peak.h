// What the machine could do at best: loops that read memory or keep the
// multipliers busy and do nothing else. `muster bench --roofline` and `muster
// doctor` time them; products and attention are compared with what they reach.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster::kernels {

// Reads every byte once, in order. Returns the exclusive or of all 64-bit
// words, so that the reads cannot be left out. Thread-safe.
// REQUIRES: size_bytes is a multiple of kReadGrain.
inline constexpr size_t kReadGrain = 1024;
uint64_t ReadAll(const std::byte* data, size_t size_bytes);

// Multiplies bytes and adds the products to 32-bit sums, as products with
// quantised weights do, from registers alone: vpdpbusd with AVX-512 VNNI, else
// vpmaddubsw, vpmaddwd and vpaddd. Returns the number of multiplications and
// additions that `rounds` took. Thread-safe.
uint64_t SpinByteProducts(uint64_t rounds);

// The same for what products with BF16 weights do: vdpbf16ps where it is in
// use, else fused multiply-adds of floats.
uint64_t SpinBFloatProducts(uint64_t rounds);

// The same for fused multiply-adds of floats.
uint64_t SpinFloatProducts(uint64_t rounds);

}  // namespace muster::kernels

// Memory for a kernel's intermediate values, kept between calls so that a warm
// step allocates nothing.
#pragma once

#include <array>
#include <cstddef>

#include "tensor/aligned_buffer.h"

namespace muster::kernels {

// Who uses it: one may run inside another.
enum class Scratch : size_t { kMatMul, kFusedProduct, kLoad, kCount };

// At least `size_bytes`, aligned to a page, of this thread. Valid until the
// thread's next call with the same user; the contents are undefined.
inline std::byte* ThreadScratch(Scratch user, size_t size_bytes) {
  thread_local std::array<AlignedBuffer, static_cast<size_t>(Scratch::kCount)>
      buffers;
  AlignedBuffer& buffer = buffers[static_cast<size_t>(user)];
  if (buffer.size_bytes() < size_bytes) buffer = AlignedBuffer(size_bytes);
  return buffer.data();
}

}  // namespace muster::kernels

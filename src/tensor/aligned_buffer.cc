#include "tensor/aligned_buffer.h"

#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace muster {
namespace {

constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t RoundUp(size_t n, size_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

}  // namespace

AlignedBuffer::AlignedBuffer(size_t size_bytes) : size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  const bool huge = size_bytes >= kHugePageBytes;
  const size_t alignment = huge ? kHugePageBytes : kAlignment;
  void* p = std::aligned_alloc(alignment, RoundUp(size_bytes, alignment));
  if (p == nullptr) throw std::bad_alloc();
  // A hint: where the kernel refuses, ordinary pages do the same work.
  if (huge) madvise(p, RoundUp(size_bytes, alignment), MADV_HUGEPAGE);
  data_.reset(static_cast<std::byte*>(p));
}

void AlignedBuffer::Free::operator()(std::byte* p) const { std::free(p); }

}  // namespace muster

// Memory for weights and activations: aligned to a page, so that direct I/O and
// every vector width may use it, and in huge pages where the kernel gives them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace muster {

class AlignedBuffer {
 public:
  static constexpr size_t kAlignment = 4096;

  AlignedBuffer() = default;
  // Uninitialised. Throws std::bad_alloc, as new does, when there is no memory.
  explicit AlignedBuffer(size_t size_bytes);

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  size_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() { return {data_.get(), size_bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* p) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  size_t size_bytes_ = 0;
};

}  // namespace muster

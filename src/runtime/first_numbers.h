// 0, 1, 2, ...: the rows of a batch, for products that take all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster::runtime {

// One thread at a time.
class FirstNumbers {
 public:
  // The numbers 0 .. count - 1. Valid until a call with a larger count.
  std::span<const uint32_t> operator()(size_t count) {
    while (numbers_.size() < count) {
      numbers_.push_back(static_cast<uint32_t>(numbers_.size()));
    }
    return std::span<const uint32_t>(numbers_).first(count);
  }

 private:
  std::vector<uint32_t> numbers_;
};

}  // namespace muster::runtime

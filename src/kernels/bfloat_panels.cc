#include "kernels/bfloat_panels.h"

#include <cstdint>
#include <cstring>

#include "tensor/float16.h"
#include "tensor/panels.h"

namespace muster::kernels {
namespace {

constexpr size_t kPairBytes = 2 * sizeof(uint16_t);

// Pairs [first, first + count) of all rows; a last odd column pairs with zero.
void PackPairs(const std::byte* rows, size_t num_rows, size_t cols,
               size_t first, size_t count, std::byte* panel) {
  for (size_t r = 0; r < num_rows; ++r) {
    const std::byte* from = rows + (r * cols + first * 2) * sizeof(uint16_t);
    std::byte* to = panel + first * kBFloatPairBytes + r * kPairBytes;
    for (size_t p = 0; p < count; ++p) {
      std::memcpy(to + p * kBFloatPairBytes, from + p * kPairBytes, kPairBytes);
    }
  }
}

}  // namespace

void PackBFloatPanel(const std::byte* rows, size_t num_rows, size_t cols,
                     std::byte* panel) {
  // Few pairs of all rows at a time: what is written stays in the cache.
  constexpr size_t kPairs = kBFloatSpan / 2;
  const size_t whole = cols / kBFloatSpan * kPairs;
  const size_t num_pairs = PaddedBFloats(cols) / 2;
  if (num_rows < kPanelRows) {
    std::memset(panel, 0, num_pairs * kBFloatPairBytes);
  }
  for (size_t p = 0; p < whole; p += kPairs) {
    PackPairs(rows, num_rows, cols, p, kPairs, panel);
  }
  if (whole == num_pairs) return;
  std::memset(panel + whole * kBFloatPairBytes, 0,
              (num_pairs - whole) * kBFloatPairBytes);
  PackPairs(rows, num_rows, cols, whole, cols / 2 - whole, panel);
  if (cols % 2 == 0) return;
  for (size_t r = 0; r < num_rows; ++r) {
    std::memcpy(panel + cols / 2 * kBFloatPairBytes + r * kPairBytes,
                rows + ((r + 1) * cols - 1) * sizeof(uint16_t),
                sizeof(uint16_t));
  }
}

void DecodeBFloatPanelRow(const std::byte* panel, size_t row, size_t cols,
                          float* out) {
  for (size_t c = 0; c < cols; ++c) {
    uint16_t word;
    std::memcpy(&word,
                panel + c / 2 * kBFloatPairBytes + row * kPairBytes +
                    c % 2 * sizeof(uint16_t),
                sizeof(word));
    out[c] = BF16ToF32(word);
  }
}

}  // namespace muster::kernels

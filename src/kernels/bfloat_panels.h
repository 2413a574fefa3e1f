// BF16 rows to panels (tensor/panels.h) and back: the part of pack_panels.h
// that has no codes and no scales.
#pragma once

#include <cstddef>

namespace muster::kernels {

// One panel of `num_rows` rows (1 to 16) of `cols` BF16 each, which may stand
// at any address.   panel: [PanelBytes(kBF16, cols)]
void PackBFloatPanel(const std::byte* rows, size_t num_rows, size_t cols,
                     std::byte* panel);

//   row: 0 to 15;   out: [cols]
void DecodeBFloatPanelRow(const std::byte* panel, size_t row, size_t cols,
                          float* out);

}  // namespace muster::kernels

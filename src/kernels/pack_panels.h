// Quantised and BF16 rows to panels (tensor/panels.h) and back.
#pragma once

#include <cstddef>

#include "tensor/matrix_view.h"

namespace muster::kernels {

// Writes one panel: `num_rows` rows (1 to 16) of `cols` columns that start at
// `rows`, each whole blocks of `type`; the panel's other rows become zeros.
// Nothing is lost: every weight decodes to the same bits. Every byte of the
// panel is written, so that equal weights give equal bytes. Thread-safe.
//   panel: [PanelBytes(type, cols)], aligned to 64 bytes
// REQUIRES: HasPanels(type), cols is a multiple of the type's block.
void PackPanel(DType type, const std::byte* rows, size_t num_rows, size_t cols,
               std::byte* panel);

// A whole matrix.   panels: [NumPanels(rows.rows) * PanelBytes(...)]
void PackPanels(const WeightView& rows, std::byte* panels);

// Decodes one row of a panel as Dequantize decodes its blocks, bit for bit.
//   row: 0 to 15;   out: [cols]
void DequantizePanelRow(DType type, const std::byte* panel, size_t row,
                        size_t cols, float* out);

}  // namespace muster::kernels

// matmul.h's products for BF16 weights in panels and BF16 activations, in the
// order of additions that bfloat_dot.h defines.
#pragma once

#include <cstddef>

#include "kernels/row_task.h"
#include "tensor/matrix_view.h"

namespace muster::kernels {

// Rows [row_begin, row_end). Thread-safe.
// REQUIRES: row_begin is a multiple of kPanelRows; task.x has bfloats.
void BFloatMatMulRows(const WeightView& w, size_t row_begin, size_t row_end,
                      const RowTask& task);

}  // namespace muster::kernels

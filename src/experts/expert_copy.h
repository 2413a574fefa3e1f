// The low-bit copy of an expert: the same matrices in fewer bytes, as a slot
// holds them. Lossy (kernels/quantize.h).
#pragma once

#include <cstddef>

#include "base/status.h"
#include "tensor/dtype.h"
#include "tensor/expert_layout.h"

namespace muster::experts {

// Where the matrices of a copy stand. Fails with kInvalidArgument where rows
// are not whole blocks of `type`, or the copy would be no smaller.
Result<ExpertLayout> CopyLayout(const ExpertLayout& layout, DType type);

// Writes every byte of the copy. Equal experts give equal copies. Thread-safe.
//   expert: [layout.size_bytes];   copy: [copy_layout.size_bytes]; both aligned
//   to 64 bytes
// REQUIRES: copy_layout is CopyLayout's of `layout`.
void MakeCopy(const ExpertLayout& layout, const std::byte* expert,
              const ExpertLayout& copy_layout, std::byte* copy);

}  // namespace muster::experts

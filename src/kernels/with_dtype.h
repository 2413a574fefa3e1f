// Calls a template with a quantised type as its argument.
#pragma once

#include <type_traits>

#include "base/check.h"
#include "tensor/dtype.h"

namespace muster::kernels {

template <DType kType>
using DTypeConstant = std::integral_constant<DType, kType>;

// fn(DTypeConstant<type>()). REQUIRES: IsQuantized(type).
template <class Fn>
inline auto WithQuantizedType(DType type, const Fn& fn) {
  switch (type) {
    case DType::kQ4_0:
      return fn(DTypeConstant<DType::kQ4_0>());
    case DType::kQ4_1:
      return fn(DTypeConstant<DType::kQ4_1>());
    case DType::kQ5_0:
      return fn(DTypeConstant<DType::kQ5_0>());
    case DType::kQ5_1:
      return fn(DTypeConstant<DType::kQ5_1>());
    case DType::kQ8_0:
      return fn(DTypeConstant<DType::kQ8_0>());
    case DType::kQ2_K:
      return fn(DTypeConstant<DType::kQ2_K>());
    case DType::kQ3_K:
      return fn(DTypeConstant<DType::kQ3_K>());
    case DType::kQ4_K:
      return fn(DTypeConstant<DType::kQ4_K>());
    case DType::kQ5_K:
      return fn(DTypeConstant<DType::kQ5_K>());
    case DType::kQ6_K:
      return fn(DTypeConstant<DType::kQ6_K>());
    case DType::kIQ4_NL:
      return fn(DTypeConstant<DType::kIQ4_NL>());
    case DType::kIQ4_XS:
      return fn(DTypeConstant<DType::kIQ4_XS>());
    case DType::kMXFP4:
      return fn(DTypeConstant<DType::kMXFP4>());
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF64:
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kF8E4M3:
      break;
  }
  CHECK(false);
}

}  // namespace muster::kernels

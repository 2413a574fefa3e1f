#include "tensor/dtype.h"

#include <array>

#include "base/check.h"

namespace muster {
namespace {

constexpr std::array<DTypeTraits, kNumDTypes> kTraits = {{
    {DType::kF32, "F32", 0, 1, 4},
    {DType::kF16, "F16", 1, 1, 2},
    {DType::kBF16, "BF16", 30, 1, 2},
    {DType::kF64, "F64", 28, 1, 8},
    {DType::kI8, "I8", 24, 1, 1},
    {DType::kI16, "I16", 25, 1, 2},
    {DType::kI32, "I32", 26, 1, 4},
    {DType::kI64, "I64", 27, 1, 8},
    {DType::kF8E4M3, "F8_E4M3", -1, 1, 1},
    {DType::kQ4_0, "Q4_0", 2, 32, 18},
    {DType::kQ4_1, "Q4_1", 3, 32, 20},
    {DType::kQ5_0, "Q5_0", 6, 32, 22},
    {DType::kQ5_1, "Q5_1", 7, 32, 24},
    {DType::kQ8_0, "Q8_0", 8, 32, 34},
    {DType::kQ2_K, "Q2_K", 10, 256, 84},
    {DType::kQ3_K, "Q3_K", 11, 256, 110},
    {DType::kQ4_K, "Q4_K", 12, 256, 144},
    {DType::kQ5_K, "Q5_K", 13, 256, 176},
    {DType::kQ6_K, "Q6_K", 14, 256, 210},
    {DType::kIQ4_NL, "IQ4_NL", 20, 32, 18},
    {DType::kIQ4_XS, "IQ4_XS", 23, 256, 136},
    {DType::kMXFP4, "MXFP4", 39, 32, 17},
}};

constexpr bool TableIsInEnumOrder() {
  for (size_t i = 0; i < kTraits.size(); ++i) {
    if (static_cast<size_t>(kTraits[i].type) != i) return false;
  }
  return true;
}
static_assert(TableIsInEnumOrder());

}  // namespace

const DTypeTraits& Traits(DType type) {
  CHECK_LT(static_cast<size_t>(type), kTraits.size());
  return kTraits[static_cast<size_t>(type)];
}

std::optional<DType> DTypeFromGgml(uint32_t ggml_type) {
  for (const DTypeTraits& traits : kTraits) {
    if (traits.ggml_type >= 0 &&
        static_cast<uint32_t>(traits.ggml_type) == ggml_type) {
      return traits.type;
    }
  }
  return std::nullopt;
}

std::optional<DType> DTypeFromSafetensors(std::string_view name) {
  for (const DType type :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,
        DType::kI16, DType::kI32, DType::kI64, DType::kF8E4M3}) {
    if (Name(type) == name) return type;
  }
  return std::nullopt;
}

size_t SizeBytes(DType type, size_t num_elements) {
  const DTypeTraits& traits = Traits(type);
  CHECK_EQ(num_elements % traits.block_elements, 0u);
  return num_elements / traits.block_elements * traits.block_bytes;
}

}  // namespace muster

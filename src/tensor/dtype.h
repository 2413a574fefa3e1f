// The element types that weights are stored in, and the one table that says
// how many elements and bytes a block of each has.
// Source: GGUF's ggml_type numbering and ggml's block layouts (ggml-common.h of
// ggml); OCP Microscaling (MXFP4) and OCP FP8 (E4M3) specifications.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace muster {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kF64,
  kI8,
  kI16,
  kI32,
  kI64,
  kF8E4M3,  // safetensors only; scales stand in a tensor of their own
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
};
inline constexpr size_t kNumDTypes = 22;

struct DTypeTraits {
  DType type;
  std::string_view name;    // as GGUF tools print it: "Q4_K"
  int32_t ggml_type;        // number in a GGUF file; -1: not in GGUF
  uint32_t block_elements;  // elements a block; a row holds whole blocks
  uint32_t block_bytes;
};

const DTypeTraits& Traits(DType type);
inline std::string_view Name(DType type) { return Traits(type).name; }

// nullopt: a type number that this build does not know.
std::optional<DType> DTypeFromGgml(uint32_t ggml_type);
// safetensors' names: "F32", "BF16", "F8_E4M3", ...
std::optional<DType> DTypeFromSafetensors(std::string_view name);

// Bytes of `num_elements` of `type`.
// REQUIRES: num_elements is a multiple of the block's, and the product fits.
size_t SizeBytes(DType type, size_t num_elements);

}  // namespace muster

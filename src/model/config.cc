#include "model/config.h"

#include <fmt/format.h>

#include <cmath>

namespace muster::model {
namespace {

// No model is near these; a file beyond them is broken or hostile. They keep
// every product of two dimensions far from overflow.
constexpr size_t kMaxDim = size_t{1} << 24;
constexpr size_t kMaxLayers = 4096;
constexpr size_t kMaxContext = size_t{1} << 28;

Status CheckRange(const char* what, size_t value, size_t low, size_t high) {
  if (value >= low && value <= high) return {};
  return Corrupt(
      fmt::format("{} is {}, expected {} to {}", what, value, low, high));
}

Status ValidateLayer(const LayerConfig& layer, size_t index) {
  const auto& router = layer.router;
  RETURN_IF_ERROR(
      CheckRange("experts of a layer", router.num_experts, 1, kMaxDim));
  if (router.top_k < 1 || router.top_k > router.num_experts) {
    return Corrupt(fmt::format("layer {}: {} experts a token of {} experts",
                               index, router.top_k, router.num_experts));
  }
  RETURN_IF_ERROR(
      CheckRange("feed-forward size", layer.expert_ff_dim, 1, kMaxDim));
  return CheckRange("shared feed-forward size", layer.shared_ff_dim, 0,
                    kMaxDim);
}

Status ValidateRope(const RopeConfig& rope, size_t head_dim) {
  if (rope.dim == 0 || rope.dim % 2 != 0 || rope.dim > head_dim) {
    return Corrupt(fmt::format(
        "rotary dimension is {}, expected an even number up to the head's {}",
        rope.dim, head_dim));
  }
  const RopeScaling& s = rope.scaling;
  if (!(rope.base > 1) || !std::isfinite(rope.base) || !(s.factor > 0) ||
      !std::isfinite(s.factor)) {
    return Corrupt(
        fmt::format("rotary base {} or scaling factor {} is out of range",
                    rope.base, s.factor));
  }
  const bool needs_context =
      s.type == RopeScalingType::kYarn || s.type == RopeScalingType::kLlama3;
  if (needs_context && s.original_context == 0) {
    return Corrupt("rotary scaling needs the original context length");
  }
  if (s.type == RopeScalingType::kLlama3 &&
      !(s.low_freq_factor > 0 && s.high_freq_factor > s.low_freq_factor)) {
    return Corrupt(
        fmt::format("rotary frequency factors {} and {}: expected "
                    "0 < low < high",
                    s.low_freq_factor, s.high_freq_factor));
  }
  for (const float factor : rope.freq_factors) {
    if (!(factor > 0) || !std::isfinite(factor)) {
      return Corrupt(fmt::format("rotary frequency factor {}", factor));
    }
  }
  return {};
}

}  // namespace

Status Validate(const ModelConfig& config) {
  RETURN_IF_ERROR(CheckRange("vocabulary", config.vocab_size, 1, kMaxDim));
  RETURN_IF_ERROR(CheckRange("model dimension", config.model_dim, 1, kMaxDim));
  RETURN_IF_ERROR(CheckRange("layers", config.layers.size(), 1, kMaxLayers));
  RETURN_IF_ERROR(CheckRange("heads", config.num_heads, 1, 65536));
  RETURN_IF_ERROR(CheckRange("KV heads", config.num_kv_heads, 1, 65536));
  RETURN_IF_ERROR(CheckRange("head dimension", config.head_dim, 2, 65536));
  RETURN_IF_ERROR(
      CheckRange("context length", config.context_length, 1, kMaxContext));
  if (config.num_heads % config.num_kv_heads != 0) {
    return Corrupt(fmt::format("{} heads cannot share {} KV heads evenly",
                               config.num_heads, config.num_kv_heads));
  }
  if (!(config.rms_eps >= 0) || !(config.rms_eps < 1)) {
    return Corrupt(fmt::format("RMS epsilon is {}", config.rms_eps));
  }
  RETURN_IF_ERROR(ValidateRope(config.rope, config.head_dim));
  for (size_t i = 0; i < config.layers.size(); ++i) {
    RETURN_IF_ERROR(ValidateLayer(config.layers[i], i));
  }
  return {};
}

}  // namespace muster::model

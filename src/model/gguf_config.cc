// GGUF's keys. Source: the GGUF specification and the keys that published files
// carry; `{arch}.` stands before each.
#include <fmt/format.h>

#include "model/config_reader.h"

namespace muster::model {
namespace {

using formats::Metadata;

// Typed access with the architecture's prefix.
class Keys {
 public:
  Keys(const Metadata& metadata, std::string architecture)
      : metadata_(metadata), prefix_(std::move(architecture) + ".") {}

  Result<uint64_t> Uint(std::string_view key) const {
    ASSIGN_OR_RETURN(const auto value, MaybeUint(key));
    if (value) return *value;
    return Corrupt(fmt::format("the file lacks the key '{}{}'", prefix_, key));
  }
  Result<uint64_t> Uint(std::string_view key, uint64_t absent) const {
    ASSIGN_OR_RETURN(const auto value, MaybeUint(key));
    return value.value_or(absent);
  }
  Result<double> Double(std::string_view key, double absent) const {
    ASSIGN_OR_RETURN(const auto value, metadata_.GetDouble(Full(key)));
    return value.value_or(absent);
  }
  Result<std::optional<bool>> Bool(std::string_view key) const {
    return metadata_.GetBool(Full(key));
  }
  Result<std::string> String(std::string_view key,
                             std::string_view absent) const {
    ASSIGN_OR_RETURN(const auto value, metadata_.GetString(Full(key)));
    return value.value_or(std::string(absent));
  }
  bool Has(std::string_view key) const { return metadata_.Has(Full(key)); }

 private:
  std::string Full(std::string_view key) const {
    return prefix_ + std::string(key);
  }

  // Some writers store one number per layer: fine while they are all equal.
  Result<std::optional<uint64_t>> MaybeUint(std::string_view key) const {
    const auto* found = metadata_.Find(Full(key));
    const bool is_array =
        found && (std::holds_alternative<std::vector<uint64_t>>(*found) ||
                  std::holds_alternative<std::vector<int64_t>>(*found));
    if (!is_array) return metadata_.GetUint(Full(key));
    ASSIGN_OR_RETURN(const auto values, metadata_.GetUints(Full(key)));
    if (!values || values->empty()) {
      return Corrupt(fmt::format("'{}{}' is an empty array", prefix_, key));
    }
    for (const uint64_t value : *values) {
      if (value != values->front()) {
        return Unsupported(fmt::format(
            "'{}{}' differs from layer to layer ({} and {}), which this build "
            "does not run",
            prefix_, key, values->front(), value));
      }
    }
    return std::optional<uint64_t>(values->front());
  }

  const Metadata& metadata_;
  std::string prefix_;
};

Status ReadRope(const Keys& keys, const Family& family, ModelConfig& config) {
  RopeConfig& rope = config.rope;
  rope.pairing = family.gguf_pairing;
  ASSIGN_OR_RETURN(rope.base, keys.Double("rope.freq_base", 10000.0));
  ASSIGN_OR_RETURN(rope.dim,
                   keys.Uint("rope.dimension_count", config.head_dim));
  RopeScaling& scaling = rope.scaling;
  ASSIGN_OR_RETURN(const auto type, keys.String("rope.scaling.type", "none"));
  ASSIGN_OR_RETURN(scaling.factor, keys.Double("rope.scaling.factor", 1.0));
  ASSIGN_OR_RETURN(const double old_factor,
                   keys.Double("rope.scale_linear", 0.0));
  ASSIGN_OR_RETURN(
      scaling.original_context,
      keys.Uint("rope.scaling.original_context_length", config.context_length));
  if (type == "linear" || (type == "none" && old_factor > 0)) {
    scaling.type = RopeScalingType::kLinear;
    if (old_factor > 0 && !keys.Has("rope.scaling.factor")) {
      scaling.factor = old_factor;
    }
    if (scaling.factor == 0) scaling.factor = 1;  // written for "no scaling"
    return {};
  }
  if (type == "none" || type.empty()) {
    scaling = {};
    return {};
  }
  if (type != "yarn") {
    return Unsupported(fmt::format(
        "rope.scaling.type is '{}', expected none, linear or yarn", type));
  }
  scaling.type = RopeScalingType::kYarn;
  ASSIGN_OR_RETURN(scaling.beta_fast,
                   keys.Double("rope.scaling.yarn_beta_fast", 32.0));
  ASSIGN_OR_RETURN(scaling.beta_slow,
                   keys.Double("rope.scaling.yarn_beta_slow", 1.0));
  // GGUF's attn_factor multiplies YaRN's own magnitude.
  ASSIGN_OR_RETURN(const double factor,
                   keys.Double("rope.scaling.attn_factor", 1.0));
  scaling.attention_factor = factor * RopeMagnitude(rope);
  return {};
}

Result<routing::GatingFunction> ReadGating(const Keys& keys,
                                           ReadConfigResult& out) {
  if (!keys.Has("expert_gating_func")) {
    out.assumptions.push_back(
        "expert_gating_func is absent: softmax, as the family has it");
    return routing::GatingFunction::kSoftmax;
  }
  ASSIGN_OR_RETURN(const auto number, keys.Uint("expert_gating_func"));
  if (number == 1) return routing::GatingFunction::kSoftmax;
  if (number == 2) return routing::GatingFunction::kSigmoid;
  return Unsupported(fmt::format(
      "expert_gating_func is {}, expected 1 (softmax) or 2 (sigmoid)", number));
}

Result<routing::RouterConfig> ReadRouter(const Keys& keys,
                                         ReadConfigResult& out) {
  routing::RouterConfig router;
  ASSIGN_OR_RETURN(const auto num_experts, keys.Uint("expert_count"));
  ASSIGN_OR_RETURN(const auto top_k, keys.Uint("expert_used_count"));
  if (num_experts > UINT32_MAX || top_k > UINT32_MAX) {
    return Corrupt(fmt::format("expert_count is {} and expert_used_count {}",
                               num_experts, top_k));
  }
  router.num_experts = static_cast<uint32_t>(num_experts);
  router.top_k = static_cast<uint32_t>(top_k);
  ASSIGN_OR_RETURN(router.gating, ReadGating(keys, out));
  ASSIGN_OR_RETURN(const auto normalize, keys.Bool("expert_weights_norm"));
  router.normalize_top_k =
      normalize.value_or(out.family->gguf_normalize_default);
  if (!normalize) {
    out.assumptions.push_back(
        fmt::format("expert_weights_norm is absent: {}, as the family has it",
                    router.normalize_top_k));
  }
  ASSIGN_OR_RETURN(const double scale, keys.Double("expert_weights_scale", 1));
  router.scale = scale == 0 ? 1.0f : static_cast<float>(scale);
  for (const char* key : {"expert_group_count", "expert_group_used_count"}) {
    ASSIGN_OR_RETURN(const auto groups, keys.Uint(key, 0));
    if (groups > 1) {
      return Unsupported(fmt::format(
          "{} is {}: routing by groups is not in this build", key, groups));
    }
  }
  return router;
}

// GGUF has no map of dense layers for these families: a layer is MoE when its
// router is in the file.
Status ReadLayers(const Keys& keys, const formats::ModelFiles& files,
                  size_t num_layers, ReadConfigResult& out) {
  LayerConfig dense, moe;
  ASSIGN_OR_RETURN(dense.expert_ff_dim, keys.Uint("feed_forward_length", 0));
  dense.router.num_experts = dense.router.top_k = 1;
  if (out.family->has_experts) {
    moe.is_moe = true;
    ASSIGN_OR_RETURN(moe.router, ReadRouter(keys, out));
    ASSIGN_OR_RETURN(moe.expert_ff_dim, keys.Uint("expert_feed_forward_length",
                                                  dense.expert_ff_dim));
    if (out.family->shared_expert) {
      // Older writers left the length out and gave it as feed_forward_length.
      ASSIGN_OR_RETURN(
          moe.shared_ff_dim,
          keys.Uint("expert_shared_feed_forward_length", dense.expert_ff_dim));
      moe.shared_gate = true;
    }
  }
  ASSIGN_OR_RETURN(const auto window, keys.Uint("attention.sliding_window", 0));
  if (window != 0) {
    return Unsupported(fmt::format(
        "attention.sliding_window is {}, expected none for this family",
        window));
  }
  for (size_t i = 0; i < num_layers; ++i) {
    const bool is_moe =
        out.family->has_experts &&
        files.Find(fmt::format("blk.{}.ffn_gate_inp.weight", i)) != nullptr;
    out.config.layers.push_back(is_moe ? moe : dense);
  }
  return {};
}

Result<size_t> VocabSize(const Keys& keys, const formats::ModelFiles& files) {
  if (const auto* embedding = files.Find("token_embd.weight");
      embedding && embedding->shape.size() == 2) {
    return static_cast<size_t>(embedding->shape[0]);
  }
  ASSIGN_OR_RETURN(const auto size, keys.Uint("vocab_size"));
  return static_cast<size_t>(size);
}

}  // namespace

Result<ReadConfigResult> ReadGgufConfig(const formats::ModelFiles& files) {
  const Metadata& metadata = files.metadata;
  ASSIGN_OR_RETURN(const auto architecture,
                   metadata.GetString("general.architecture"));
  if (!architecture) {
    return Corrupt("the file lacks the key 'general.architecture'");
  }
  const Keys keys(metadata, *architecture);
  ASSIGN_OR_RETURN(const auto num_experts, keys.Uint("expert_count", 0));
  ReadConfigResult out;
  out.family = FindByGguf(*architecture, num_experts > 0);
  if (out.family == nullptr) {
    return Unsupported(fmt::format(
        "architecture '{}'{} is not one that this build runs (it runs {})",
        *architecture, num_experts > 0 ? " with experts" : "", FamilyNames()));
  }
  ModelConfig& config = out.config;
  config.family = out.family->name;
  ASSIGN_OR_RETURN(const auto name, metadata.GetString("general.name"));
  config.name = name.value_or("");
  ASSIGN_OR_RETURN(const auto num_layers, keys.Uint("block_count"));
  if (num_layers == 0 || num_layers > files.tensors.size()) {
    return Corrupt(fmt::format(
        "'{}.block_count' is {}, in a file of {} tensors (CASES G02)",
        *architecture, num_layers, files.tensors.size()));
  }
  ASSIGN_OR_RETURN(config.vocab_size, VocabSize(keys, files));
  ASSIGN_OR_RETURN(config.model_dim, keys.Uint("embedding_length"));
  ASSIGN_OR_RETURN(config.num_heads, keys.Uint("attention.head_count"));
  ASSIGN_OR_RETURN(config.num_kv_heads,
                   keys.Uint("attention.head_count_kv", config.num_heads));
  if (config.num_heads == 0) return Corrupt("attention.head_count is 0");
  ASSIGN_OR_RETURN(
      config.head_dim,
      keys.Uint("attention.key_length", config.model_dim / config.num_heads));
  ASSIGN_OR_RETURN(const auto value_dim,
                   keys.Uint("attention.value_length", config.head_dim));
  if (value_dim != config.head_dim) {
    return Unsupported(fmt::format(
        "attention.value_length is {} and key_length {}: expected equal",
        value_dim, config.head_dim));
  }
  ASSIGN_OR_RETURN(config.context_length, keys.Uint("context_length"));
  ASSIGN_OR_RETURN(const double eps,
                   keys.Double("attention.layer_norm_rms_epsilon", 1e-6));
  config.rms_eps = static_cast<float>(eps);
  config.qk_norm = out.family->qk_norm;
  // GGUF has no key for it: the bias is there when its tensor is.
  config.qkv_bias =
      out.family->qkv_bias || files.Find("blk.0.attn_q.bias") != nullptr;
  config.tied_embeddings = files.Find("output.weight") == nullptr;
  RETURN_IF_ERROR(ReadRope(keys, *out.family, config));
  RETURN_IF_ERROR(ReadLayers(keys, files, num_layers, out));
  return out;
}

}  // namespace muster::model

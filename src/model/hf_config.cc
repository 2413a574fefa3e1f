// Hugging Face's config.json. Keys and defaults as the configuration classes of
// transformers have them; both the older `rope_theta` + `rope_scaling` and the
// newer `rope_parameters` are read.
#include <fmt/format.h>

#include "model/config_reader.h"
#include "model/json.h"

namespace muster::model {
namespace {

using nlohmann::json;

Result<size_t> RequireSize(const json& object, const char* key) {
  ASSIGN_OR_RETURN(const auto value, Get<uint64_t>(object, key));
  if (value) return static_cast<size_t>(*value);
  return Corrupt(fmt::format("config.json lacks '{}'", key));
}

Status ReadScaling(const json& object, RopeScaling& scaling) {
  ASSIGN_OR_RETURN(auto type, Get<std::string>(object, "rope_type"));
  if (!type) {
    ASSIGN_OR_RETURN(type, Get<std::string>(object, "type"));
  }
  if (!type || *type == "default") return {};
  ASSIGN_OR_RETURN(const auto factor, Get<double>(object, "factor"));
  scaling.factor = factor.value_or(1.0);
  ASSIGN_OR_RETURN(const auto context,
                   Get<uint64_t>(object, "original_max_position_embeddings"));
  if (context) scaling.original_context = *context;
  if (*type == "linear") {
    scaling.type = RopeScalingType::kLinear;
  } else if (*type == "yarn") {
    scaling.type = RopeScalingType::kYarn;
    ASSIGN_OR_RETURN(const auto fast, Get<double>(object, "beta_fast"));
    ASSIGN_OR_RETURN(const auto slow, Get<double>(object, "beta_slow"));
    ASSIGN_OR_RETURN(const auto truncate, Get<bool>(object, "truncate"));
    ASSIGN_OR_RETURN(scaling.attention_factor,
                     Get<double>(object, "attention_factor"));
    scaling.beta_fast = fast.value_or(32.0);
    scaling.beta_slow = slow.value_or(1.0);
    scaling.truncate = truncate.value_or(true);
    for (const char* key : {"mscale", "mscale_all_dim"}) {
      if (object.contains(key)) {
        return Unsupported(fmt::format(
            "config.json: rope scaling has '{}', which no family of this "
            "build uses",
            key));
      }
    }
  } else if (*type == "llama3") {
    scaling.type = RopeScalingType::kLlama3;
    ASSIGN_OR_RETURN(const auto low, Get<double>(object, "low_freq_factor"));
    ASSIGN_OR_RETURN(const auto high, Get<double>(object, "high_freq_factor"));
    scaling.low_freq_factor = low.value_or(1.0);
    scaling.high_freq_factor = high.value_or(4.0);
  } else {
    return Unsupported(fmt::format(
        "config.json: rope type '{}', expected default, linear, yarn or llama3",
        *type));
  }
  return {};
}

Status ReadRope(const json& root, const Family& family, ModelConfig& config) {
  RopeConfig& rope = config.rope;
  rope.base = family.hf_keys.rope_theta;
  rope.dim = config.head_dim;
  rope.scaling.original_context = config.context_length;
  ASSIGN_OR_RETURN(const auto partial,
                   Get<double>(root, "partial_rotary_factor"));
  if (partial && *partial != 1.0) {
    return Unsupported(fmt::format(
        "config.json: partial_rotary_factor is {}, expected 1", *partial));
  }
  ASSIGN_OR_RETURN(const auto theta, Get<double>(root, "rope_theta"));
  rope.base = theta.value_or(rope.base);
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    const auto found = root.find(key);
    if (found == root.end() || found->is_null()) continue;
    if (!found->is_object()) {
      return Corrupt(fmt::format("config.json: '{}' is not an object", key));
    }
    ASSIGN_OR_RETURN(const auto inner, Get<double>(*found, "rope_theta"));
    rope.base = inner.value_or(rope.base);
    RETURN_IF_ERROR(ReadScaling(*found, rope.scaling));
  }
  return {};
}

Result<routing::RouterConfig> ReadRouter(const json& root,
                                         ReadConfigResult& out) {
  routing::RouterConfig router;
  // Versions of transformers differ in the name, whatever the family.
  const char* name =
      root.contains("num_local_experts") ? "num_local_experts" : "num_experts";
  ASSIGN_OR_RETURN(const auto num_experts, RequireSize(root, name));
  ASSIGN_OR_RETURN(const auto top_k, RequireSize(root, "num_experts_per_tok"));
  if (num_experts > UINT32_MAX || top_k > UINT32_MAX) {
    return Corrupt(
        fmt::format("config.json: {} experts, {} a token", num_experts, top_k));
  }
  router.num_experts = static_cast<uint32_t>(num_experts);
  router.top_k = static_cast<uint32_t>(top_k);
  router.gating = routing::GatingFunction::kSoftmax;
  ASSIGN_OR_RETURN(const auto normalize, Get<bool>(root, "norm_topk_prob"));
  router.normalize_top_k = normalize.value_or(out.family->hf_normalize_default);
  // Mixtral's configuration has no such key: nothing is assumed there.
  if (!normalize && out.family->name != "mixtral") {
    out.assumptions.push_back(
        fmt::format("norm_topk_prob is absent: {}, as the family has it",
                    router.normalize_top_k));
  }
  return router;
}

// Which layers are MoE: mlp_only_layers and decoder_sparse_step (CASES R17).
Result<std::vector<bool>> MoeLayers(const json& root, size_t num_layers,
                                    bool has_experts) {
  std::vector<bool> is_moe(num_layers, has_experts);
  ASSIGN_OR_RETURN(const auto step, Get<uint64_t>(root, "decoder_sparse_step"));
  if (step && *step == 0) {
    return Corrupt("config.json: decoder_sparse_step is 0");
  }
  for (size_t i = 0; i < num_layers; ++i) {
    if ((i + 1) % step.value_or(1) != 0) is_moe[i] = false;
  }
  const auto dense = root.find("mlp_only_layers");
  if (dense == root.end() || dense->is_null()) return is_moe;
  if (!dense->is_array()) {
    return Corrupt("config.json: mlp_only_layers is not an array");
  }
  for (const json& layer : *dense) {
    if (!layer.is_number_unsigned() || layer.get<uint64_t>() >= num_layers) {
      return Corrupt(fmt::format(
          "config.json: mlp_only_layers names a layer outside 0 to {}",
          num_layers - 1));
    }
    is_moe[layer.get<uint64_t>()] = false;
  }
  return is_moe;
}

// Tokens that attention sees in `layer`; 0: all. Newer files say it per layer
// in layer_types, older ones from max_window_layers on.
Result<size_t> SlidingWindow(const json& root, size_t layer) {
  ASSIGN_OR_RETURN(const auto window, Get<uint64_t>(root, "sliding_window"));
  ASSIGN_OR_RETURN(const auto use, Get<bool>(root, "use_sliding_window"));
  ASSIGN_OR_RETURN(const auto first, Get<uint64_t>(root, "max_window_layers"));
  bool slides = window && use.value_or(true) && layer >= first.value_or(0);
  const auto types = root.find("layer_types");
  if (types != root.end() && !types->is_null()) {
    if (!types->is_array() || layer >= types->size() ||
        !(*types)[layer].is_string()) {
      return Corrupt("config.json: layer_types is not a string per layer");
    }
    const auto type = (*types)[layer].get<std::string>();
    if (type != "full_attention" && type != "sliding_attention") {
      return Unsupported(fmt::format(
          "config.json: layer {} has attention '{}', expected full_attention "
          "or sliding_attention",
          layer, type));
    }
    slides = type == "sliding_attention";
    if (slides && !window) {
      return Corrupt("config.json: sliding_attention without sliding_window");
    }
  }
  return slides ? static_cast<size_t>(*window) : size_t{0};
}

Status ReadLayers(const json& root, size_t num_layers, ReadConfigResult& out) {
  LayerConfig dense, moe;
  ASSIGN_OR_RETURN(dense.expert_ff_dim, RequireSize(root, "intermediate_size"));
  dense.router.num_experts = dense.router.top_k = 1;
  const Family& family = *out.family;
  if (family.has_experts) {
    moe.is_moe = true;
    ASSIGN_OR_RETURN(moe.router, ReadRouter(root, out));
    ASSIGN_OR_RETURN(moe.expert_ff_dim,
                     RequireSize(root, family.hf_keys.expert_ff_dim.data()));
    if (family.shared_expert) {
      ASSIGN_OR_RETURN(moe.shared_ff_dim,
                       RequireSize(root, "shared_expert_intermediate_size"));
      moe.shared_gate = true;
    }
  }
  ASSIGN_OR_RETURN(const auto is_moe,
                   MoeLayers(root, num_layers, family.has_experts));
  for (size_t i = 0; i < num_layers; ++i) {
    LayerConfig layer = is_moe[i] ? moe : dense;
    ASSIGN_OR_RETURN(layer.sliding_window, SlidingWindow(root, i));
    out.config.layers.push_back(layer);
  }
  return {};
}

// What would change the math and is not built: an error, never ignored.
Status RefuseWhatIsNotBuilt(const json& root) {
  ASSIGN_OR_RETURN(const auto act, Get<std::string>(root, "hidden_act"));
  if (act && *act != "silu" && *act != "swish") {
    return Unsupported(
        fmt::format("config.json: hidden_act is '{}', expected silu", *act));
  }
  if (const auto clip = root.find("clip_qkv");
      clip != root.end() && !clip->is_null()) {
    return Unsupported("config.json: clip_qkv is set, expected null");
  }
  ASSIGN_OR_RETURN(const auto mlp_bias, Get<bool>(root, "mlp_bias"));
  if (mlp_bias.value_or(false)) {
    return Unsupported("config.json: mlp_bias is true, expected false");
  }
  return {};
}

Status ReadQuantization(const json& root, ReadConfigResult& out) {
  const auto found = root.find("quantization_config");
  if (found == root.end() || found->is_null()) return {};
  if (!found->is_object()) {
    return Corrupt("config.json: quantization_config is not an object");
  }
  ASSIGN_OR_RETURN(const auto method, Get<std::string>(*found, "quant_method"));
  if (method.value_or("") != "fp8") {
    return Unsupported(
        fmt::format("config.json: quant_method is '{}', expected fp8",
                    method.value_or("")));
  }
  const auto tile = found->find("weight_block_size");
  if (tile == found->end() || !tile->is_array() || tile->size() != 2 ||
      !(*tile)[0].is_number_unsigned() || !(*tile)[1].is_number_unsigned() ||
      (*tile)[0] == 0 || (*tile)[1] == 0) {
    return Unsupported(
        "config.json: fp8 without weight_block_size [rows, cols]");
  }
  out.scale_tile_rows = (*tile)[0].get<size_t>();
  out.scale_tile_cols = (*tile)[1].get<size_t>();
  return {};
}

Result<const Family*> FindFamily(const json& root) {
  const auto names = root.find("architectures");
  std::string found;
  if (names != root.end() && names->is_array() && names->size() == 1 &&
      (*names)[0].is_string()) {
    found = (*names)[0].get<std::string>();
  }
  const Family* family = FindByHf(found);
  if (family != nullptr) return family;
  return Unsupported(fmt::format(
      "config.json: architecture '{}' is not one that this build runs (it "
      "runs {})",
      found, FamilyNames()));
}

}  // namespace

Result<ReadConfigResult> ReadHfConfig(const std::string& config_json) {
  ASSIGN_OR_RETURN(const json root,
                   ParseJsonObject(config_json, "config.json"));
  ReadConfigResult out;
  ASSIGN_OR_RETURN(out.family, FindFamily(root));
  RETURN_IF_ERROR(RefuseWhatIsNotBuilt(root));
  ModelConfig& config = out.config;
  config.family = out.family->name;
  ASSIGN_OR_RETURN(const auto num_layers,
                   RequireSize(root, "num_hidden_layers"));
  if (num_layers == 0 || num_layers > 4096) {
    return Corrupt(
        fmt::format("config.json: num_hidden_layers is {}", num_layers));
  }
  ASSIGN_OR_RETURN(config.vocab_size, RequireSize(root, "vocab_size"));
  ASSIGN_OR_RETURN(config.model_dim, RequireSize(root, "hidden_size"));
  ASSIGN_OR_RETURN(config.num_heads, RequireSize(root, "num_attention_heads"));
  if (config.num_heads == 0) {
    return Corrupt("config.json: num_attention_heads is 0");
  }
  ASSIGN_OR_RETURN(const auto kv_heads,
                   Get<uint64_t>(root, "num_key_value_heads"));
  config.num_kv_heads = kv_heads.value_or(config.num_heads);
  ASSIGN_OR_RETURN(const auto head_dim, Get<uint64_t>(root, "head_dim"));
  config.head_dim = head_dim.value_or(config.model_dim / config.num_heads);
  ASSIGN_OR_RETURN(config.context_length,
                   RequireSize(root, "max_position_embeddings"));
  ASSIGN_OR_RETURN(const auto eps, Get<double>(root, "rms_norm_eps"));
  config.rms_eps = static_cast<float>(eps.value_or(1e-6));
  config.qk_norm = out.family->qk_norm;
  ASSIGN_OR_RETURN(const auto bias, Get<bool>(root, "attention_bias"));
  ASSIGN_OR_RETURN(const auto qkv_bias, Get<bool>(root, "qkv_bias"));
  config.qkv_bias =
      qkv_bias.value_or(out.family->qkv_bias) || bias.value_or(false);
  ASSIGN_OR_RETURN(const auto tied, Get<bool>(root, "tie_word_embeddings"));
  config.tied_embeddings = tied.value_or(false);
  RETURN_IF_ERROR(ReadRope(root, *out.family, config));
  RETURN_IF_ERROR(ReadLayers(root, num_layers, out));
  RETURN_IF_ERROR(ReadQuantization(root, out));
  return out;
}

Result<ReadConfigResult> ReadConfig(const formats::ModelFiles& files) {
  auto read = files.format == formats::Format::kGguf
                  ? ReadGgufConfig(files)
                  : ReadHfConfig(files.config_json);
  if (!read.ok()) {
    return Status(read.status().code(),
                  fmt::format("{}: {}", files.path, read.status().message()));
  }
  if (Status status = Validate(read->config); !status.ok()) {
    return Status(status.code(),
                  fmt::format("{}: {}", files.path, status.message()));
  }
  return read;
}

}  // namespace muster::model

#include "model/weight_index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <unordered_set>

namespace muster::model {
namespace {

using formats::TensorInfo;

struct Dims {
  size_t rows = 0;
  size_t cols = 0;
};

std::string Expand(std::string_view pattern, size_t layer, size_t expert) {
  std::string name;
  for (size_t i = 0; i < pattern.size();) {
    if (pattern.substr(i, 3) == "{L}") {
      name += std::to_string(layer);
      i += 3;
    } else if (pattern.substr(i, 3) == "{E}") {
      name += std::to_string(expert);
      i += 3;
    } else {
      name += pattern[i++];
    }
  }
  return name;
}

// The shape that a slot's matrix must have.
Dims Expected(Slot slot, const ModelConfig& c, const LayerConfig& layer) {
  const bool whole = c.qk_norm == QkNorm::kWholeProjection;
  const size_t d = c.model_dim;
  const size_t ff = layer.expert_ff_dim;
  switch (slot) {
    case Slot::kTokenEmbedding:
    case Slot::kOutput:
      return {c.vocab_size, d};
    case Slot::kOutputNorm:
    case Slot::kAttnNorm:
    case Slot::kFfnNorm:
    case Slot::kSharedRouter:
      return {1, d};
    case Slot::kRopeFreqs:
      return {1, c.rope.dim / 2};
    case Slot::kQ:
      return {c.q_dim(), d};
    case Slot::kK:
    case Slot::kV:
      return {c.kv_dim(), d};
    case Slot::kO:
      return {d, c.q_dim()};
    case Slot::kQBias:
      return {1, c.q_dim()};
    case Slot::kKBias:
    case Slot::kVBias:
      return {1, c.kv_dim()};
    case Slot::kQNorm:
      return {1, whole ? c.q_dim() : c.head_dim};
    case Slot::kKNorm:
      return {1, whole ? c.kv_dim() : c.head_dim};
    case Slot::kRouter:
      return {layer.router.num_experts, d};
    case Slot::kExpertGate:
    case Slot::kExpertUp:
      return {ff, d};
    case Slot::kExpertGateUp:
      return {2 * ff, d};
    case Slot::kExpertDown:
      return {d, ff};
    case Slot::kSharedGate:
    case Slot::kSharedUp:
      return {layer.shared_ff_dim, d};
    case Slot::kSharedDown:
      return {d, layer.shared_ff_dim};
  }
  return {};
}

bool HoldsWeights(DType type) {
  switch (type) {
    case DType::kI8:
    case DType::kI16:
    case DType::kI32:
    case DType::kI64:
    case DType::kF64:
      return false;
    default:
      return true;
  }
}

// Binds one file's tensors; keeps track of what is used and what is missing.
class Binder {
 public:
  Binder(const formats::ModelFiles& files, const ReadConfigResult& read)
      : files_(files), read_(read), config_(read.config) {}

  Result<WeightIndex> Bind() {
    index_.layers.resize(config_.layers.size());
    for (size_t i = 0; i < config_.layers.size(); ++i) {
      index_.layers[i].experts.resize(config_.layers[i].router.num_experts);
    }
    for (const TensorRule& rule : read_.family->tensors) {
      RETURN_IF_ERROR(ApplyRule(rule));
    }
    RETURN_IF_ERROR(CheckAllFilled());
    RETURN_IF_ERROR(CheckAllUsed());
    return std::move(index_);
  }

 private:
  Status ApplyRule(const TensorRule& rule) {
    const std::string_view pattern =
        files_.format == formats::Format::kGguf ? rule.gguf : rule.hf;
    if (pattern.empty() || !Wanted(rule.slot)) return {};
    if (rule.scope == Scope::kModel) return BindAt(rule.slot, pattern, 0);
    for (size_t layer = 0; layer < config_.layers.size(); ++layer) {
      const bool is_moe = config_.layers[layer].is_moe;
      if (rule.scope == Scope::kMoeLayer && !is_moe) continue;
      if (rule.scope == Scope::kDenseLayer && is_moe) continue;
      RETURN_IF_ERROR(BindAt(rule.slot, pattern, layer));
    }
    return {};
  }

  // Slots that this model's configuration has no use for stay empty: a tensor
  // that would fill one is then an error, as any other unused tensor.
  bool Wanted(Slot slot) const {
    switch (slot) {
      case Slot::kOutput:
        return !config_.tied_embeddings;
      case Slot::kQBias:
      case Slot::kKBias:
      case Slot::kVBias:
        return config_.qkv_bias;
      default:
        return true;
    }
  }

  Status BindAt(Slot slot, std::string_view pattern, size_t layer) {
    const bool per_expert = pattern.find("{E}") != std::string_view::npos;
    const bool routed_expert =
        config_.layers[layer].is_moe &&
        (slot == Slot::kExpertGate || slot == Slot::kExpertUp ||
         slot == Slot::kExpertDown || slot == Slot::kExpertGateUp);
    const bool stacked = !per_expert && routed_expert;
    const size_t num_tensors =
        per_expert ? config_.layers[layer].router.num_experts : 1;
    for (size_t i = 0; i < num_tensors; ++i) {
      const std::string name = Expand(pattern, layer, i);
      const TensorInfo* tensor = files_.Find(name);
      if (tensor == nullptr) continue;
      used_.insert(tensor->name);
      RETURN_IF_ERROR(CheckPacked(*tensor, routed_expert));
      if (stacked) {
        RETURN_IF_ERROR(FillStack(slot, layer, *tensor));
      } else {
        RETURN_IF_ERROR(FillOne(slot, layer, i, *tensor));
      }
    }
    return {};
  }

  Status ShapeError(const TensorInfo& tensor, const std::string& expected) {
    return Corrupt(fmt::format("{}: tensor '{}' has shape [{}], expected [{}]",
                               files_.paths[tensor.file], tensor.name,
                               fmt::join(tensor.shape, ", "), expected));
  }

  // A reference to `dims` at `offset` bytes into the tensor.
  Result<MatrixRef> Refer(const TensorInfo& tensor, Dims dims,
                          uint64_t offset) {
    if (!HoldsWeights(tensor.type)) {
      return Corrupt(fmt::format(
          "{}: tensor '{}' has type {}, expected weights",
          files_.paths[tensor.file], tensor.name, Name(tensor.type)));
    }
    if (dims.cols % Traits(tensor.type).block_elements != 0) {
      return Corrupt(fmt::format(
          "{}: tensor '{}' has rows of {} elements, not whole {} blocks",
          files_.paths[tensor.file], tensor.name, dims.cols,
          Name(tensor.type)));
    }
    MatrixRef ref{.type = tensor.type,
                  .file = tensor.file,
                  .offset = tensor.offset + offset,
                  .rows = dims.rows,
                  .cols = dims.cols,
                  .scales = {},
                  .packed = tensor.packed};
    if (tensor.type == DType::kF8E4M3) {
      ASSIGN_OR_RETURN(ref.scales, FindScales(tensor, dims));
    }
    return ref;
  }

  // Whoever wrote a pack's manifest must not make us read a tensor where there
  // is none.
  Status CheckPacked(const TensorInfo& tensor, bool routed_expert) const {
    const bool expected = files_.pack != nullptr && routed_expert;
    if (tensor.packed == expected) return {};
    return Corrupt(fmt::format(
        "{}: tensor '{}' stands among the {}, where it does not belong",
        files_.path, tensor.name, tensor.packed ? "experts" : "dense weights"));
  }

  Result<std::optional<ScaleRef>> FindScales(const TensorInfo& tensor,
                                             Dims dims) {
    const size_t tile_rows = read_.scale_tile_rows;
    const size_t tile_cols = read_.scale_tile_cols;
    const std::string name = tensor.name + "_scale_inv";
    const TensorInfo* scales = files_.Find(name);
    if (scales == nullptr || tile_rows == 0) {
      return Corrupt(
          fmt::format("{}: tensor '{}' is FP8; expected its scales "
                      "'{}' and weight_block_size in config.json",
                      files_.paths[tensor.file], tensor.name, name));
    }
    used_.insert(scales->name);
    RETURN_IF_ERROR(CheckPacked(*scales, tensor.packed));
    const std::vector<uint64_t> expected = {
        (dims.rows + tile_rows - 1) / tile_rows,
        (dims.cols + tile_cols - 1) / tile_cols};
    if (scales->shape != expected || tensor.shape.size() != 2) {
      return ShapeError(*scales, fmt::format("{}", fmt::join(expected, ", ")));
    }
    if (scales->type != DType::kF32 && scales->type != DType::kBF16) {
      return Corrupt(
          fmt::format("tensor '{}' has type {}, expected F32 or BF16", name,
                      Name(scales->type)));
    }
    return std::optional<ScaleRef>(ScaleRef{.type = scales->type,
                                            .file = scales->file,
                                            .offset = scales->offset,
                                            .tile_rows = tile_rows,
                                            .tile_cols = tile_cols});
  }

  Status FillOne(Slot slot, size_t layer, size_t expert,
                 const TensorInfo& tensor) {
    const Dims dims = Expected(slot, config_, config_.layers[layer]);
    const bool is_vector = dims.rows == 1 && tensor.shape.size() == 1;
    const std::vector<uint64_t> found =
        is_vector ? std::vector<uint64_t>{1, tensor.shape[0]} : tensor.shape;
    if (found != std::vector<uint64_t>{dims.rows, dims.cols}) {
      return ShapeError(tensor, fmt::format("{}, {}", dims.rows, dims.cols));
    }
    MatrixRef* ref = Place(slot, layer, expert);
    if (ref->present()) return TwoFillers(tensor);
    ASSIGN_OR_RETURN(*ref, Refer(tensor, dims, 0));
    return {};
  }

  // All experts of a layer in one tensor [experts, rows, cols].
  Status FillStack(Slot slot, size_t layer, const TensorInfo& tensor) {
    const LayerConfig& config = config_.layers[layer];
    const Dims dims = Expected(slot, config_, config);
    const size_t num_experts = config.router.num_experts;
    if (tensor.shape !=
        std::vector<uint64_t>{num_experts, dims.rows, dims.cols}) {
      return ShapeError(
          tensor, fmt::format("{}, {}, {}", num_experts, dims.rows, dims.cols));
    }
    const uint64_t stride = tensor.size_bytes / num_experts;
    for (size_t e = 0; e < num_experts; ++e) {
      ASSIGN_OR_RETURN(const MatrixRef ref, Refer(tensor, dims, e * stride));
      if (slot == Slot::kExpertGateUp) {
        RETURN_IF_ERROR(SplitGateUp(ref, layer, e, tensor));
        continue;
      }
      MatrixRef* place = Place(slot, layer, e);
      if (place->present()) return TwoFillers(tensor);
      *place = ref;
    }
    return {};
  }

  // The upper half of the rows is gate, the lower is up (CASES G24: this order
  // is what the name `gate_up_proj` means in these families' reference).
  Status SplitGateUp(MatrixRef both, size_t layer, size_t expert,
                     const TensorInfo& tensor) {
    ExpertRefs& refs = index_.layers[layer].experts[expert];
    if (refs.gate.present() || refs.up.present()) return TwoFillers(tensor);
    both.rows /= 2;
    refs.gate = both;
    both.offset += both.size_bytes();
    refs.up = both;
    return {};
  }

  Status TwoFillers(const TensorInfo& tensor) {
    return Corrupt(fmt::format(
        "{}: tensor '{}' fills a slot that another tensor filled already",
        files_.paths[tensor.file], tensor.name));
  }

  MatrixRef* Place(Slot slot, size_t layer, size_t expert) {
    LayerRefs& l = index_.layers[layer];
    switch (slot) {
      case Slot::kTokenEmbedding:
        return &index_.token_embedding;
      case Slot::kOutputNorm:
        return &index_.output_norm;
      case Slot::kOutput:
        return &index_.output;
      case Slot::kRopeFreqs:
        return &index_.rope_freqs;
      case Slot::kAttnNorm:
        return &l.attn_norm;
      case Slot::kFfnNorm:
        return &l.ffn_norm;
      case Slot::kQ:
        return &l.q;
      case Slot::kK:
        return &l.k;
      case Slot::kV:
        return &l.v;
      case Slot::kO:
        return &l.o;
      case Slot::kQBias:
        return &l.q_bias;
      case Slot::kKBias:
        return &l.k_bias;
      case Slot::kVBias:
        return &l.v_bias;
      case Slot::kQNorm:
        return &l.q_norm;
      case Slot::kKNorm:
        return &l.k_norm;
      case Slot::kRouter:
        return &l.router;
      case Slot::kExpertGate:
        return &l.experts[expert].gate;
      case Slot::kExpertUp:
        return &l.experts[expert].up;
      case Slot::kExpertDown:
        return &l.experts[expert].down;
      case Slot::kExpertGateUp:
        return nullptr;  // SplitGateUp places it
      case Slot::kSharedGate:
        return &l.shared.gate;
      case Slot::kSharedUp:
        return &l.shared.up;
      case Slot::kSharedDown:
        return &l.shared.down;
      case Slot::kSharedRouter:
        return &l.shared_router;
    }
    return nullptr;
  }

  // Every rule's slots must be filled, but for the few that may be absent.
  Status CheckAllFilled() {
    std::vector<std::string> missing;
    for (const TensorRule& rule : read_.family->tensors) {
      if (rule.slot == Slot::kRopeFreqs || rule.slot == Slot::kExpertGateUp ||
          !Wanted(rule.slot)) {
        continue;
      }
      CollectMissing(rule, missing);
    }
    if (missing.empty()) return {};
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    return Corrupt(
        fmt::format("{}: {} of the {} model's weights {} missing: {}",
                    files_.path, missing.size(), config_.family,
                    missing.size() == 1 ? "is" : "are", FirstFew(missing)));
  }

  void CollectMissing(const TensorRule& rule,
                      std::vector<std::string>& missing) {
    const size_t layers =
        rule.scope == Scope::kModel ? 1 : config_.layers.size();
    for (size_t layer = 0; layer < layers; ++layer) {
      const LayerConfig& config = config_.layers[layer];
      if (rule.scope == Scope::kMoeLayer && !config.is_moe) continue;
      if (rule.scope == Scope::kDenseLayer && config.is_moe) continue;
      const bool of_experts = rule.slot == Slot::kExpertGate ||
                              rule.slot == Slot::kExpertUp ||
                              rule.slot == Slot::kExpertDown;
      const size_t count = of_experts ? config.router.num_experts : 1;
      for (size_t e = 0; e < count; ++e) {
        if (Place(rule.slot, layer, e)->present()) continue;
        const std::string_view pattern =
            files_.format == formats::Format::kGguf ? rule.gguf : rule.hf;
        if (!pattern.empty()) missing.push_back(Expand(pattern, layer, e));
      }
    }
  }

  Status CheckAllUsed() {
    std::vector<std::string> unused;
    for (const TensorInfo& tensor : files_.tensors) {
      if (!used_.contains(tensor.name) && !MayBeIgnored(tensor)) {
        unused.push_back(tensor.name);
      }
    }
    if (unused.empty()) return {};
    return Unsupported(fmt::format(
        "{}: {} tensor{} fit{} no slot of a {} model, so the result would be "
        "wrong: {}",
        files_.path, unused.size(), unused.size() == 1 ? "" : "s",
        unused.size() == 1 ? "s" : "", config_.family, FirstFew(unused)));
  }

  // Copies and constants that carry no information of their own.
  bool MayBeIgnored(const TensorInfo& tensor) const {
    const std::string_view name = tensor.name;
    return tensor.num_elements() == 0 ||  // a flag, not a weight (CASES G01)
           name.ends_with("rotary_emb.inv_freq") ||
           (name == "lm_head.weight" && config_.tied_embeddings);
  }

  static std::string FirstFew(const std::vector<std::string>& names) {
    constexpr size_t kShown = 5;
    std::string text = fmt::format(
        "{}", fmt::join(names.begin(),
                        names.begin() + std::min(names.size(), kShown), ", "));
    if (names.size() > kShown) {
      text += fmt::format(" and {} more", names.size() - kShown);
    }
    return text;
  }

  const formats::ModelFiles& files_;
  const ReadConfigResult& read_;
  const ModelConfig& config_;
  WeightIndex index_;
  std::unordered_set<std::string_view> used_;
};

}  // namespace

Result<WeightIndex> BindWeights(const formats::ModelFiles& files,
                                const ReadConfigResult& read) {
  return Binder(files, read).Bind();
}

}  // namespace muster::model

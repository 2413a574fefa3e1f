// A model family as data: how its configuration is spelled, which tensor fills
// which slot, and the few facts in which families differ. One file in families/
// each; families/registry.cc lists them.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/rope.h"
#include "model/config.h"

namespace muster::model {

// A place in the model that a tensor fills.
enum class Slot : uint8_t {
  kTokenEmbedding,
  kOutputNorm,
  kOutput,
  kRopeFreqs,
  // per layer
  kAttnNorm,
  kFfnNorm,
  kQ,
  kK,
  kV,
  kO,
  kQBias,
  kKBias,
  kVBias,
  kQNorm,
  kKNorm,
  kRouter,
  kExpertGate,
  kExpertUp,
  kExpertDown,
  kExpertGateUp,  // gate's rows, then up's, in one tensor
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kSharedRouter,  // the vector behind the shared expert's sigmoid
};

// Where a rule holds.
enum class Scope : uint8_t {
  kModel,       // once
  kLayer,       // in every layer
  kMoeLayer,    // in layers with a router
  kDenseLayer,  // in layers without one
};

// `{L}` in a name stands for the layer, `{E}` for the expert: a name with {E}
// is one tensor per expert, one without is all experts stacked.
// Several rules may name one slot: the first whose tensor exists fills it.
struct TensorRule {
  Slot slot;
  Scope scope;
  std::string_view gguf;  // empty: no such tensor in GGUF
  std::string_view hf;    // empty: no such tensor in safetensors
};

// What Hugging Face's config.json leaves to the family.
struct HfKeys {
  std::string_view expert_ff_dim = "moe_intermediate_size";
  double rope_theta = 10000.0;  // where the file does not say
};

struct Family {
  std::string_view name;             // Hugging Face's model_type
  std::string_view hf_architecture;  // of config.json
  std::string_view gguf_architecture;
  bool has_experts = false;
  HfKeys hf_keys = {};
  QkNorm qk_norm = QkNorm::kNone;
  bool qkv_bias = false;  // always; config.json's attention_bias adds it too
  bool shared_expert = false;
  kernels::RopePairing gguf_pairing = kernels::RopePairing::kHalves;
  // What an absent norm_topk_prob (config.json) or expert_weights_norm (GGUF)
  // means: what the reference of each format does (CASES R01).
  bool hf_normalize_default = false;
  bool gguf_normalize_default = false;
  std::vector<TensorRule> tensors;
};

// Every family that this build knows. Thread-safe.
std::span<const Family> Families();

// nullptr: unknown. A GGUF architecture may serve a dense and an expert family.
const Family* FindByGguf(std::string_view architecture, bool has_experts);
const Family* FindByHf(std::string_view architecture);

// "llama, mixtral, ...": for messages.
std::string FamilyNames();

}  // namespace muster::model

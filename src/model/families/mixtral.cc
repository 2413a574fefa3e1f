// Mixtral (Jiang et al., 2024): softmax over the two chosen experts, which is
// softmax over all and then renormalised. In GGUF it is `llama` with experts.
#include "model/families/common.h"

namespace muster::model {
namespace {

constexpr TensorRule kMixtralExpertRules[] = {
    {Slot::kRouter, Scope::kMoeLayer, "blk.{L}.ffn_gate_inp.weight",
     "model.layers.{L}.block_sparse_moe.gate.weight"},
    {Slot::kExpertGate, Scope::kMoeLayer, "blk.{L}.ffn_gate_exps.weight",
     "model.layers.{L}.block_sparse_moe.experts.{E}.w1.weight"},
    {Slot::kExpertUp, Scope::kMoeLayer, "blk.{L}.ffn_up_exps.weight",
     "model.layers.{L}.block_sparse_moe.experts.{E}.w3.weight"},
    {Slot::kExpertDown, Scope::kMoeLayer, "blk.{L}.ffn_down_exps.weight",
     "model.layers.{L}.block_sparse_moe.experts.{E}.w2.weight"},
    // Files of early 2024 hold one tensor per expert.
    {Slot::kExpertGate, Scope::kMoeLayer, "blk.{L}.ffn_gate.{E}.weight", ""},
    {Slot::kExpertUp, Scope::kMoeLayer, "blk.{L}.ffn_up.{E}.weight", ""},
    {Slot::kExpertDown, Scope::kMoeLayer, "blk.{L}.ffn_down.{E}.weight", ""},
    // Newer safetensors name the block `mlp` and stack the experts.
    {Slot::kRouter, Scope::kMoeLayer, "", "model.layers.{L}.mlp.gate.weight"},
    {Slot::kExpertGateUp, Scope::kMoeLayer, "",
     "model.layers.{L}.mlp.experts.gate_up_proj"},
    {Slot::kExpertDown, Scope::kMoeLayer, "",
     "model.layers.{L}.mlp.experts.down_proj"},
};

}  // namespace

Family MixtralFamily() {
  return {.name = "mixtral",
          .hf_architecture = "MixtralForCausalLM",
          .gguf_architecture = "llama",
          .has_experts = true,
          .hf_keys = {.expert_ff_dim = "intermediate_size", .rope_theta = 1e6},
          .gguf_pairing = kernels::RopePairing::kInterleaved,
          .hf_normalize_default = true,
          .gguf_normalize_default = true,
          .tensors = Join({kFrameRules, kAttentionRules, kDenseRules,
                           kMixtralExpertRules})};
}

}  // namespace muster::model

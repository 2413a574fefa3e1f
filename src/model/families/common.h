// Rows that most families' tensor tables share.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "model/family.h"

namespace muster::model {

// Embedding, final norm, output head, rotary factors.
inline constexpr TensorRule kFrameRules[] = {
    {Slot::kTokenEmbedding, Scope::kModel, "token_embd.weight",
     "model.embed_tokens.weight"},
    {Slot::kOutputNorm, Scope::kModel, "output_norm.weight",
     "model.norm.weight"},
    {Slot::kOutput, Scope::kModel, "output.weight", "lm_head.weight"},
    {Slot::kRopeFreqs, Scope::kModel, "rope_freqs.weight", ""},
};

inline constexpr TensorRule kAttentionRules[] = {
    {Slot::kAttnNorm, Scope::kLayer, "blk.{L}.attn_norm.weight",
     "model.layers.{L}.input_layernorm.weight"},
    {Slot::kFfnNorm, Scope::kLayer, "blk.{L}.ffn_norm.weight",
     "model.layers.{L}.post_attention_layernorm.weight"},
    {Slot::kQ, Scope::kLayer, "blk.{L}.attn_q.weight",
     "model.layers.{L}.self_attn.q_proj.weight"},
    {Slot::kK, Scope::kLayer, "blk.{L}.attn_k.weight",
     "model.layers.{L}.self_attn.k_proj.weight"},
    {Slot::kV, Scope::kLayer, "blk.{L}.attn_v.weight",
     "model.layers.{L}.self_attn.v_proj.weight"},
    {Slot::kO, Scope::kLayer, "blk.{L}.attn_output.weight",
     "model.layers.{L}.self_attn.o_proj.weight"},
};

inline constexpr TensorRule kQkvBiasRules[] = {
    {Slot::kQBias, Scope::kLayer, "blk.{L}.attn_q.bias",
     "model.layers.{L}.self_attn.q_proj.bias"},
    {Slot::kKBias, Scope::kLayer, "blk.{L}.attn_k.bias",
     "model.layers.{L}.self_attn.k_proj.bias"},
    {Slot::kVBias, Scope::kLayer, "blk.{L}.attn_v.bias",
     "model.layers.{L}.self_attn.v_proj.bias"},
};

inline constexpr TensorRule kQkNormRules[] = {
    {Slot::kQNorm, Scope::kLayer, "blk.{L}.attn_q_norm.weight",
     "model.layers.{L}.self_attn.q_norm.weight"},
    {Slot::kKNorm, Scope::kLayer, "blk.{L}.attn_k_norm.weight",
     "model.layers.{L}.self_attn.k_norm.weight"},
};

// A dense feed-forward block: one expert that is always on.
inline constexpr TensorRule kDenseRules[] = {
    {Slot::kExpertGate, Scope::kDenseLayer, "blk.{L}.ffn_gate.weight",
     "model.layers.{L}.mlp.gate_proj.weight"},
    {Slot::kExpertUp, Scope::kDenseLayer, "blk.{L}.ffn_up.weight",
     "model.layers.{L}.mlp.up_proj.weight"},
    {Slot::kExpertDown, Scope::kDenseLayer, "blk.{L}.ffn_down.weight",
     "model.layers.{L}.mlp.down_proj.weight"},
};

// Routed experts as Qwen and OLMoE name them: stacked (GGUF; fused in newer
// safetensors) or one tensor per expert.
inline constexpr TensorRule kExpertRules[] = {
    {Slot::kRouter, Scope::kMoeLayer, "blk.{L}.ffn_gate_inp.weight",
     "model.layers.{L}.mlp.gate.weight"},
    {Slot::kExpertGate, Scope::kMoeLayer, "blk.{L}.ffn_gate_exps.weight",
     "model.layers.{L}.mlp.experts.{E}.gate_proj.weight"},
    {Slot::kExpertUp, Scope::kMoeLayer, "blk.{L}.ffn_up_exps.weight",
     "model.layers.{L}.mlp.experts.{E}.up_proj.weight"},
    {Slot::kExpertDown, Scope::kMoeLayer, "blk.{L}.ffn_down_exps.weight",
     "model.layers.{L}.mlp.experts.{E}.down_proj.weight"},
    {Slot::kExpertGateUp, Scope::kMoeLayer, "",
     "model.layers.{L}.mlp.experts.gate_up_proj"},
    {Slot::kExpertDown, Scope::kMoeLayer, "",
     "model.layers.{L}.mlp.experts.down_proj"},
};

inline constexpr TensorRule kSharedExpertRules[] = {
    {Slot::kSharedRouter, Scope::kMoeLayer, "blk.{L}.ffn_gate_inp_shexp.weight",
     "model.layers.{L}.mlp.shared_expert_gate.weight"},
    {Slot::kSharedGate, Scope::kMoeLayer, "blk.{L}.ffn_gate_shexp.weight",
     "model.layers.{L}.mlp.shared_expert.gate_proj.weight"},
    {Slot::kSharedUp, Scope::kMoeLayer, "blk.{L}.ffn_up_shexp.weight",
     "model.layers.{L}.mlp.shared_expert.up_proj.weight"},
    {Slot::kSharedDown, Scope::kMoeLayer, "blk.{L}.ffn_down_shexp.weight",
     "model.layers.{L}.mlp.shared_expert.down_proj.weight"},
};

// One table from several.
inline std::vector<TensorRule> Join(
    std::initializer_list<std::span<const TensorRule>> tables) {
  std::vector<TensorRule> all;
  for (const auto& table : tables) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

// Defined one per file in this folder.
Family LlamaFamily();
Family MixtralFamily();
Family Qwen2Family();
Family Qwen2MoeFamily();
Family Qwen3Family();
Family Qwen3MoeFamily();
Family OlmoeFamily();

}  // namespace muster::model

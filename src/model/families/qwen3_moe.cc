// Qwen3-MoE: Qwen3's attention, routed experts, no shared one. Published models
// set norm_topk_prob; GGUF files leave it out and mean true.
#include "model/families/common.h"

namespace muster::model {

Family Qwen3MoeFamily() {
  return {.name = "qwen3_moe",
          .hf_architecture = "Qwen3MoeForCausalLM",
          .gguf_architecture = "qwen3moe",
          .has_experts = true,
          .qk_norm = QkNorm::kPerHead,
          .gguf_normalize_default = true,
          .tensors = Join({kFrameRules, kAttentionRules, kQkvBiasRules,
                           kQkNormRules, kDenseRules, kExpertRules})};
}

}  // namespace muster::model

// Qwen1.5-MoE and Qwen2-MoE: a shared expert behind a sigmoid gate (CASES R11),
// routed weights as the softmax over all experts gave them (R02).
#include "model/families/common.h"

namespace muster::model {

Family Qwen2MoeFamily() {
  return {.name = "qwen2_moe",
          .hf_architecture = "Qwen2MoeForCausalLM",
          .gguf_architecture = "qwen2moe",
          .has_experts = true,
          .qkv_bias = true,
          .shared_expert = true,
          .tensors = Join({kFrameRules, kAttentionRules, kQkvBiasRules,
                           kDenseRules, kExpertRules, kSharedExpertRules})};
}

}  // namespace muster::model

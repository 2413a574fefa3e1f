// OLMoE (Muennighoff et al., 2024): an RMS norm over the whole projection of q
// and k, and routed weights that are not renormalised (CASES R02).
#include "model/families/common.h"

namespace muster::model {

Family OlmoeFamily() {
  return {.name = "olmoe",
          .hf_architecture = "OlmoeForCausalLM",
          .gguf_architecture = "olmoe",
          .has_experts = true,
          .hf_keys = {.expert_ff_dim = "intermediate_size"},
          .qk_norm = QkNorm::kWholeProjection,
          .tensors =
              Join({kFrameRules, kAttentionRules, kQkNormRules, kExpertRules})};
}

}  // namespace muster::model

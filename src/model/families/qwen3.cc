// Qwen3: dense, an RMS norm on each head of q and k.
#include "model/families/common.h"

namespace muster::model {

Family Qwen3Family() {
  return {.name = "qwen3",
          .hf_architecture = "Qwen3ForCausalLM",
          .gguf_architecture = "qwen3",
          .qk_norm = QkNorm::kPerHead,
          .tensors = Join({kFrameRules, kAttentionRules, kQkvBiasRules,
                           kQkNormRules, kDenseRules})};
}

}  // namespace muster::model

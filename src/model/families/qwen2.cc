// Qwen2 and Qwen2.5: dense, with biases on q, k and v.
#include "model/families/common.h"

namespace muster::model {

Family Qwen2Family() {
  return {.name = "qwen2",
          .hf_architecture = "Qwen2ForCausalLM",
          .gguf_architecture = "qwen2",
          .qkv_bias = true,
          .tensors =
              Join({kFrameRules, kAttentionRules, kQkvBiasRules, kDenseRules})};
}

}  // namespace muster::model

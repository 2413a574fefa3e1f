// Llama 1 to 3: dense; GGUF files hold q and k rotated for interleaved pairs.
#include "model/families/common.h"

namespace muster::model {

Family LlamaFamily() {
  return {.name = "llama",
          .hf_architecture = "LlamaForCausalLM",
          .gguf_architecture = "llama",
          .gguf_pairing = kernels::RopePairing::kInterleaved,
          .tensors =
              Join({kFrameRules, kAttentionRules, kQkvBiasRules, kDenseRules})};
}

}  // namespace muster::model

// Weights in memory, as the math reads them. Views only: whoever loaded the
// bytes owns them (see runtime/loaded_model.h).
#pragma once

#include <vector>

#include "tensor/matrix_view.h"

namespace muster::model {

struct ExpertWeights {
  WeightView gate;  // [ff_dim, model_dim]
  WeightView up;    // [ff_dim, model_dim]
  WeightView down;  // [model_dim, ff_dim]
};

// Vectors are float32 whatever the file held; nullptr where the model has none.
struct LayerWeights {
  const float* attn_norm = nullptr;  // [model_dim]
  const float* ffn_norm = nullptr;   // [model_dim]
  WeightView q, k, v;                // [q_dim or kv_dim, model_dim]
  WeightView o;                      // [model_dim, q_dim]
  const float* q_bias = nullptr;     // [q_dim]
  const float* k_bias = nullptr;     // [kv_dim]
  const float* v_bias = nullptr;     // [kv_dim]
  const float* q_norm = nullptr;     // [head_dim] or [q_dim]
  const float* k_norm = nullptr;     // [head_dim] or [kv_dim]
  WeightView router;                 // [num_experts, model_dim], float32
  WeightView shared_router;          // [1, model_dim], float32
  ExpertWeights shared;              // empty: no shared expert
  std::vector<ExpertWeights> experts;
};

struct ModelWeights {
  WeightView token_embedding;  // [vocab_size, model_dim]; may stay on disk
  const float* output_norm = nullptr;  // [model_dim]
  WeightView output;  // [vocab_size, model_dim]; the embedding when tied
  std::vector<LayerWeights> layers;
};

}  // namespace muster::model

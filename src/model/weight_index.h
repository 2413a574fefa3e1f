// Which bytes of which file are which weight: every slot of the model bound to
// its tensor, and every tensor accounted for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/status.h"
#include "formats/model_files.h"
#include "model/config_reader.h"
#include "tensor/dtype.h"

namespace muster::model {

// Scales of an FP8 matrix: float32 or bfloat16, one per tile, row-major.
struct ScaleRef {
  DType type = DType::kF32;
  uint32_t file = 0;
  uint64_t offset = 0;
  size_t tile_rows = 0;
  size_t tile_cols = 0;
};

// A matrix (or, with one row, a vector) in a file. Not there when cols is 0.
struct MatrixRef {
  DType type = DType::kF32;
  uint32_t file = 0;  // index into ModelFiles::paths
  uint64_t offset = 0;
  size_t rows = 0;
  size_t cols = 0;
  std::optional<ScaleRef> scales;
  // Of a pack's expert: file and offset mean nothing (see expert_pack.h).
  bool packed = false;

  bool present() const { return cols != 0; }
  uint64_t num_elements() const { return uint64_t{rows} * cols; }
  uint64_t size_bytes() const { return rows * SizeBytes(type, cols); }
};

// One feed-forward block: routed expert, shared expert or dense layer.
struct ExpertRefs {
  MatrixRef gate;  // [ff_dim, model_dim]
  MatrixRef up;    // [ff_dim, model_dim]
  MatrixRef down;  // [model_dim, ff_dim]

  uint64_t num_elements() const {
    return gate.num_elements() + up.num_elements() + down.num_elements();
  }
  uint64_t size_bytes() const {
    return gate.size_bytes() + up.size_bytes() + down.size_bytes();
  }
};

struct LayerRefs {
  MatrixRef attn_norm, ffn_norm;     // [1, model_dim]
  MatrixRef q, k, v;                 // [q_dim or kv_dim, model_dim]
  MatrixRef o;                       // [model_dim, q_dim]
  MatrixRef q_bias, k_bias, v_bias;  // [1, q_dim or kv_dim]
  MatrixRef q_norm, k_norm;          // [1, head_dim or the projection's]
  MatrixRef router;                  // [num_experts, model_dim]
  MatrixRef shared_router;           // [1, model_dim]
  ExpertRefs shared;
  std::vector<ExpertRefs> experts;  // [num_experts]; dense: one
};

struct WeightIndex {
  MatrixRef token_embedding;  // [vocab_size, model_dim]
  MatrixRef output_norm;      // [1, model_dim]
  MatrixRef output;           // [vocab_size, model_dim]; absent when tied
  MatrixRef rope_freqs;       // [1, rope_dim / 2]; may be absent
  std::vector<LayerRefs> layers;
};

// Binds all. Fails when a tensor has the wrong shape or type, when a slot stays
// empty, or when a tensor fills no slot: the message names them (CASES T08,
// R17). In a pack the routed experts, and nothing else, are packed.
Result<WeightIndex> BindWeights(const formats::ModelFiles& files,
                                const ReadConfigResult& read);

}  // namespace muster::model

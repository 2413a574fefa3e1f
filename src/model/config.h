// What a model is, whatever file it came from: dimensions, rotary embedding,
// and per layer how many experts there are and how they are chosen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "kernels/rope.h"
#include "routing/router.h"

namespace muster::model {

// Which part of q and k an RMS norm covers before the rotation.
enum class QkNorm : uint8_t { kNone, kPerHead, kWholeProjection };

enum class RopeScalingType : uint8_t { kNone, kLinear, kYarn, kLlama3 };

// Sources: linear: Chen et al. 2023; YaRN: Peng et al. 2023; llama-3: the
// `rope_type: llama3` of Hugging Face configurations.
struct RopeScaling {
  RopeScalingType type = RopeScalingType::kNone;
  double factor = 1.0;
  uint64_t original_context = 0;  // positions the model was trained on
  // YaRN
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;  // round the ends of the ramp to whole dimensions
  std::optional<double> attention_factor;  // absent: 0.1 ln(factor) + 1
  // llama-3
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
};

struct RopeConfig {
  double base = 10000.0;
  size_t dim = 0;  // elements of a head that turn
  kernels::RopePairing pairing = kernels::RopePairing::kHalves;
  RopeScaling scaling;
  // Divisors of each pair's frequency; empty: none. (GGUF's rope_freqs.weight.)
  std::vector<float> freq_factors;  // [dim / 2]
};

// One transformer layer. A dense layer is a layer with one expert that is
// always on: is_moe is false, num_experts and top_k are 1.
struct LayerConfig {
  bool is_moe = false;
  routing::RouterConfig router;  // num_experts, top_k, gating, normalisation
  size_t expert_ff_dim = 0;      // of one routed (or the one dense) expert
  size_t shared_ff_dim = 0;      // 0: no shared expert
  bool shared_gate = false;      // shared expert times sigmoid(x . w)
  size_t sliding_window = 0;     // tokens that attention sees; 0: all
};

struct ModelConfig {
  std::string family;  // "qwen3_moe": see families/
  std::string name;    // the file's own title; may be empty
  size_t vocab_size = 0;
  size_t model_dim = 0;
  size_t num_heads = 0;
  size_t num_kv_heads = 0;
  size_t head_dim = 0;
  size_t context_length = 0;  // positions the model was made for
  float rms_eps = 0;
  QkNorm qk_norm = QkNorm::kNone;
  bool qkv_bias = false;
  bool tied_embeddings = false;  // the output head is the embedding table
  RopeConfig rope;
  std::vector<LayerConfig> layers;

  size_t q_dim() const { return num_heads * head_dim; }
  size_t kv_dim() const { return num_kv_heads * head_dim; }
};

// Fails when the numbers cannot belong together (zero or absurd dimensions,
// heads that do not divide, top_k above the number of experts, ...).
Status Validate(const ModelConfig& config);

// Radians a position for each pair, scaling applied.   [rope.dim / 2]
std::vector<double> RopeInverseFrequencies(const RopeConfig& rope);

// What multiplies cosines and sines: YaRN's attention factor, else 1.
double RopeMagnitude(const RopeConfig& rope);

}  // namespace muster::model

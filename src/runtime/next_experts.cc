#include "runtime/next_experts.h"

#include <algorithm>

#include "kernels/rms_norm.h"

namespace muster::runtime {
namespace {

constexpr size_t kSampledRows = 64;

}  // namespace

void NextExperts::Ask(size_t layer, size_t layers_ahead, const float* hidden,
                      size_t num_rows,
                      std::vector<kernels::Product>& products) {
  const size_t dim = model_.config.model_dim;
  const size_t num_sampled = std::min(num_rows, kSampledRows);
  const size_t end =
      std::min(layer + 1 + std::min(layers_ahead, questions_.size()),
               model_.config.layers.size());
  num_questions_ = 0;
  for (size_t next = layer + 1; next < end; ++next) {
    if (!model_.config.layers[next].is_moe) continue;
    const model::LayerWeights& weights = model_.weights.layers[next];
    Question& question = questions_[num_questions_++];
    question.layer = next;
    question.normed.resize(num_sampled * dim);
    question.logits.resize(num_sampled * weights.router.rows);
    for (size_t i = 0; i < num_sampled; ++i) {
      const size_t row = i * num_rows / num_sampled;
      kernels::RmsNorm(hidden + row * dim, weights.ffn_norm,
                       model_.config.rms_eps, dim,
                       question.normed.data() + i * dim);
    }
    question.x = {
        .x = question.normed.data(), .num_rows = num_sampled, .cols = dim};
    products.push_back({&weights.router, &question.x, first_rows_(num_sampled),
                        question.logits.data(), weights.router.rows});
  }
}

std::span<const routing::ExpertId> NextExperts::Answer() {
  answer_.clear();
  for (size_t i = 0; i < num_questions_; ++i) AnswerOne(questions_[i]);
  num_questions_ = 0;
  return answer_;
}

// The rows' weights say how much an expert is wanted: one that many rows call,
// or, of a single row, one that is called for sure.
void NextExperts::AnswerOne(const Question& question) {
  routing::Route(model_.config.layers[question.layer].router,
                 question.logits.data(), nullptr, question.x.num_rows,
                 &routing_);
  wanted_.assign(model_.config.layers[question.layer].router.num_experts, -1);
  ids_.clear();
  for (size_t slot = 0; slot < routing_.ids.size(); ++slot) {
    const uint32_t id = routing_.ids[slot];
    if (wanted_[id] < 0) {
      wanted_[id] = 0;
      ids_.push_back(id);
    }
    wanted_[id] += routing_.weights[slot];
  }
  std::sort(ids_.begin(), ids_.end(), [&](uint32_t a, uint32_t b) {
    return wanted_[a] != wanted_[b] ? wanted_[a] > wanted_[b] : a < b;
  });
  for (const uint32_t id : ids_) {
    answer_.push_back({static_cast<uint32_t>(question.layer), id});
  }
}

}  // namespace muster::runtime

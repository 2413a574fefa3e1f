#include "runtime/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace muster::runtime {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

Status CheckRange(const char* name, float value, float low, float high) {
  if (value >= low && value <= high) return {};  // NaN fails both
  return InvalidArgument(
      fmt::format("{} is {}, expected {} to {}", name, value, low, high));
}

}  // namespace

Status Validate(const SamplingOptions& o) {
  RETURN_IF_ERROR(CheckRange("temperature", o.temperature, 0, 100));
  RETURN_IF_ERROR(CheckRange("top_p", o.top_p, 0, 1));
  RETURN_IF_ERROR(CheckRange("min_p", o.min_p, 0, 1));
  RETURN_IF_ERROR(
      CheckRange("repetition_penalty", o.repetition_penalty, 0.01f, 100));
  RETURN_IF_ERROR(
      CheckRange("presence_penalty", o.presence_penalty, -100, 100));
  RETURN_IF_ERROR(
      CheckRange("frequency_penalty", o.frequency_penalty, -100, 100));
  for (const auto& [token, bias] : o.logit_bias) {
    if (std::isnan(bias)) {
      return InvalidArgument(
          fmt::format("logit_bias of token {} is not a number", token));
    }
  }
  return {};
}

int32_t ArgMax(std::span<const float> logits) {
  size_t best = 0;
  float best_logit = kNever;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (logits[i] > best_logit) {  // false for NaN
      best = i;
      best_logit = logits[i];
    }
  }
  return static_cast<int32_t>(best);
}

Sampler::Sampler(SamplingOptions options)
    : options_(std::move(options)), random_(options_.seed) {
  CHECK(Validate(options_).ok());
}

void Sampler::Accept(int32_t token) {
  if (options_.penalty_window == 0) return;
  recent_.push_back(token);
  ++recent_counts_[token];
  if (recent_.size() <= options_.penalty_window) return;
  const auto oldest = recent_counts_.find(recent_.front());
  recent_.pop_front();
  if (--oldest->second == 0) recent_counts_.erase(oldest);
}

int32_t Sampler::Sample(std::span<float> logits) {
  for (float& logit : logits) {
    if (std::isnan(logit)) logit = kNever;
  }
  ApplyBiasAndPenalties(logits);
  if (options_.temperature == 0) return ArgMax(logits);
  KeepTopK(logits);
  KeepTopP();
  KeepMinP();
  return Draw();
}

void Sampler::ApplyBiasAndPenalties(std::span<float> logits) const {
  for (const auto& [token, bias] : options_.logit_bias) {
    if (token >= 0 && static_cast<size_t>(token) < logits.size()) {
      logits[static_cast<size_t>(token)] += bias;
    }
  }
  for (const auto& [token, count] : recent_counts_) {
    if (static_cast<size_t>(token) >= logits.size()) continue;
    float& logit = logits[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / options_.repetition_penalty
                      : logit * options_.repetition_penalty;
    logit -= options_.presence_penalty +
             options_.frequency_penalty * static_cast<float>(count);
  }
}

void Sampler::KeepTopK(std::span<const float> logits) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates_.push_back({static_cast<int32_t>(i), logits[i], 0});
  }
  const size_t keep =
      options_.top_k == 0
          ? candidates_.size()
          : std::min<size_t>(options_.top_k, candidates_.size());
  std::partial_sort(
      candidates_.begin(),
      candidates_.begin() + static_cast<std::ptrdiff_t>(keep),
      candidates_.end(), [](const Candidate& a, const Candidate& b) {
        return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
      });
  candidates_.resize(keep);
}

// Softmax over the candidates; the first has the largest logit.
void Sampler::SetProbabilities(double temperature) {
  const double largest = candidates_.front().logit;
  double sum = 0;
  for (Candidate& c : candidates_) {
    c.probability = std::exp((c.logit - largest) / temperature);
    sum += c.probability;
  }
  for (Candidate& c : candidates_) c.probability /= sum;
}

void Sampler::KeepTopP() {
  if (options_.top_p >= 1) return;
  SetProbabilities(1.0);
  double sum = 0;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    sum += candidates_[i].probability;
    if (sum >= static_cast<double>(options_.top_p)) {
      candidates_.resize(i + 1);
      return;
    }
  }
}

void Sampler::KeepMinP() {
  if (options_.min_p <= 0) return;
  SetProbabilities(1.0);
  const double floor =
      candidates_.front().probability * static_cast<double>(options_.min_p);
  size_t keep = 1;
  while (keep < candidates_.size() && candidates_[keep].probability >= floor) {
    ++keep;
  }
  candidates_.resize(keep);
}

int32_t Sampler::Draw() {
  // Nothing is allowed (all -inf): no distribution to draw from.
  if (candidates_.front().logit == kNever) return candidates_.front().token;
  SetProbabilities(static_cast<double>(options_.temperature));
  // 53 random bits: std::uniform_real_distribution differs between libraries.
  double left = static_cast<double>(random_() >> 11) * 0x1p-53;
  for (const Candidate& c : candidates_) {
    left -= c.probability;
    if (left < 0) return c.token;
  }
  return candidates_.back().token;
}

}  // namespace muster::runtime

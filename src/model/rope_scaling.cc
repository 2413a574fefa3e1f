#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "model/config.h"

namespace muster::model {
namespace {

// The (fractional) pair whose wave makes `turns` turns in the original context.
double PairWithTurns(const RopeConfig& rope, double turns) {
  const auto dim = static_cast<double>(rope.dim);
  const auto context = static_cast<double>(rope.scaling.original_context);
  return dim * std::log(context / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(rope.base));
}

// YaRN: fast pairs keep their frequency, slow ones are stretched by the factor,
// and those between are mixed along a ramp.
double Yarn(const RopeConfig& rope, double inv_freq, size_t pair) {
  double low = PairWithTurns(rope, rope.scaling.beta_fast);
  double high = PairWithTurns(rope, rope.scaling.beta_slow);
  if (rope.scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rope.dim) - 1);
  if (low == high) high += 0.001;  // the reference avoids 0 / 0 in this way
  const double ramp =
      std::clamp((static_cast<double>(pair) - low) / (high - low), 0.0, 1.0);
  return inv_freq / rope.scaling.factor * ramp + inv_freq * (1 - ramp);
}

// llama-3: long waves are stretched, short ones kept, a smooth step between.
double Llama3(const RopeScaling& scaling, double inv_freq) {
  const double wave = 2 * std::numbers::pi / inv_freq;
  const auto context = static_cast<double>(scaling.original_context);
  if (wave > context / scaling.low_freq_factor) {
    return inv_freq / scaling.factor;
  }
  if (wave < context / scaling.high_freq_factor) return inv_freq;
  const double smooth = (context / wave - scaling.low_freq_factor) /
                        (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - smooth) * inv_freq / scaling.factor + smooth * inv_freq;
}

double Scale(const RopeConfig& rope, double inv_freq, size_t pair) {
  switch (rope.scaling.type) {
    case RopeScalingType::kNone:
      return inv_freq;
    case RopeScalingType::kLinear:
      return inv_freq / rope.scaling.factor;
    case RopeScalingType::kYarn:
      return Yarn(rope, inv_freq, pair);
    case RopeScalingType::kLlama3:
      return Llama3(rope.scaling, inv_freq);
  }
  CHECK(false);
}

}  // namespace

std::vector<double> RopeInverseFrequencies(const RopeConfig& rope) {
  std::vector<double> inv_freq(rope.dim / 2);
  for (size_t pair = 0; pair < inv_freq.size(); ++pair) {
    const double exponent =
        2 * static_cast<double>(pair) / static_cast<double>(rope.dim);
    const double plain = 1 / std::pow(rope.base, exponent);
    inv_freq[pair] = Scale(rope, plain, pair);
    if (!rope.freq_factors.empty()) {
      inv_freq[pair] /= static_cast<double>(rope.freq_factors[pair]);
    }
  }
  return inv_freq;
}

double RopeMagnitude(const RopeConfig& rope) {
  if (rope.scaling.type != RopeScalingType::kYarn) return 1.0;
  if (rope.scaling.attention_factor) return *rope.scaling.attention_factor;
  return rope.scaling.factor > 1 ? 0.1 * std::log(rope.scaling.factor) + 1
                                 : 1.0;
}

}  // namespace muster::model

// What is done to a text before it is cut into words.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tokenizer/regex.h"
#include "tokenizer/spec.h"

namespace muster::tokenizer {

// Immutable, thread-safe.
class Normalizer {
 public:
  static Result<Normalizer> Make(std::span<const NormalizerStep> steps);

  bool empty() const { return steps_.empty(); }
  std::string Apply(std::string_view text) const;

 private:
  struct Step {
    NormalizerStep spec;
    std::vector<Regex> regex;  // one for a kReplace by regex, or none
  };

  std::vector<Step> steps_;
};

}  // namespace muster::tokenizer

// What a scheduler's step takes of which sequence.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/batch_row.h"
#include "runtime/scheduled_sequence.h"

namespace muster::runtime {

struct StepLimits {
  size_t tokens = 0;
  size_t prompt_tokens_beside_answers = 0;
  size_t logit_rows = 0;
};

// The next tokens of one sequence, whose rows stand side by side.
struct StepPart {
  ScheduledSequence* sequence = nullptr;
  size_t num_tokens = 0;
};

// One token of each that answers, then the next tokens of prompts, as far as
// the limits allow; those in front first. REQUIRES: both limits allow a token
// of each sequence.
std::vector<StepPart> ChooseParts(std::span<ScheduledSequence* const> sequences,
                                  const StepLimits& limits);

// The parts' rows, one part behind the other.
// REQUIRES: the sequences' caches have room for them.
std::vector<BatchRow> RowsOf(std::span<const StepPart> parts);

}  // namespace muster::runtime

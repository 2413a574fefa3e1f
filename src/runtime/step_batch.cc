#include "runtime/step_batch.h"

#include <algorithm>

namespace muster::runtime {
namespace {

// The most next tokens of the sequence, up to `limit`, of which no more than
// `*logit_rows` want their logits; those are taken off.
size_t TokensWithin(const ScheduledSequence& sequence, size_t limit,
                    size_t* logit_rows) {
  const size_t most = std::min(limit, sequence.num_left());
  for (size_t count = 0; count < most; ++count) {
    if (!sequence.WantsLogits(sequence.num_computed + count)) continue;
    if (*logit_rows == 0) return count;
    --*logit_rows;
  }
  return most;
}

}  // namespace

std::vector<StepPart> ChooseParts(std::span<ScheduledSequence* const> sequences,
                                  const StepLimits& limits) {
  std::vector<StepPart> parts;
  size_t logit_rows = limits.logit_rows;
  size_t left = limits.tokens;
  for (ScheduledSequence* sequence : sequences) {
    if (!sequence->is_answering() || left == 0) continue;
    const size_t count = TokensWithin(*sequence, 1, &logit_rows);
    if (count == 0) continue;
    parts.push_back({sequence, count});
    --left;
  }
  if (!parts.empty()) {
    left = std::min(left, limits.prompt_tokens_beside_answers);
  }
  for (ScheduledSequence* sequence : sequences) {
    if (sequence->is_answering()) continue;
    const size_t count = TokensWithin(*sequence, left, &logit_rows);
    if (count == 0) continue;
    parts.push_back({sequence, count});
    left -= count;
  }
  return parts;
}

std::vector<BatchRow> RowsOf(std::span<const StepPart> parts) {
  std::vector<BatchRow> rows;
  for (const StepPart& part : parts) {
    ScheduledSequence& sequence = *part.sequence;
    for (size_t i = 0; i < part.num_tokens; ++i) {
      const size_t position = sequence.num_computed + i;
      rows.push_back({.token = sequence.tokens[position],
                      .position = position,
                      .kv = &sequence.kv,
                      .wants_logits = sequence.WantsLogits(position)});
    }
  }
  return rows;
}

}  // namespace muster::runtime

#include "experts/expert_pool_rules.h"

#include <algorithm>
#include <chrono>

namespace muster::experts {
namespace {

double MachineSeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint64_t TurnsOfAStep(const ExpertTable& table) {
  uint64_t turns = 0;
  for (uint32_t l = 0; l < table.num_layers(); ++l) {
    if (table.layer(l).num_experts > 0) ++turns;
  }
  return turns;
}

std::vector<uint8_t> Marks(const std::vector<uint32_t>& experts,
                           uint32_t num_experts) {
  std::vector<uint8_t> marks(num_experts);
  for (const uint32_t expert : experts) marks[expert] = 1;
  return marks;
}

// The oldest of a list that nobody holds.
uint32_t OldestFree(const RecencyLists& lists, uint32_t list,
                    std::span<const uint32_t> pins) {
  uint32_t expert = lists.Oldest(list);
  while (expert != kNoExpert && pins[expert] != 0) expert = lists.Newer(expert);
  return expert;
}

}  // namespace

ExpertPoolRules::ExpertPoolRules(const PoolOptions& options,
                                 const ExpertTable& table, uint32_t num_classes)
    : options_(options),
      has_transients_(options.load_after > 1 || !options.never_kept.empty()),
      run_window_turns_(kRunWindowSteps * TurnsOfAStep(table)),
      is_pinned_(Marks(options.pinned, table.num_experts())),
      is_never_kept_(Marks(options.never_kept, table.num_experts())),
      run_(has_transients_ ? table.num_experts() : 0),
      last_use_(run_.size()),
      transients_(has_transients_ ? num_classes : 0,
                  has_transients_ ? table.num_experts() : 0),
      used_seconds_(unloads_idle() ? table.num_experts() : 0),
      by_use_(unloads_idle() ? 1 : 0,
              unloads_idle() ? table.num_experts() : 0) {
  if (!options_.now_seconds) options_.now_seconds = MachineSeconds;
}

void ExpertPoolRules::Insert(uint32_t size_class, uint32_t expert,
                             uint32_t num_tokens) {
  if (unloads_idle()) Touch(expert);
  if (!has_transients_) return;
  if (turn_ - last_use_[expert] > run_window_turns_) run_[expert] = 0;
  transients_.Append(size_class, expert);
  Use(size_class, expert, num_tokens);
}

void ExpertPoolRules::Use(uint32_t size_class, uint32_t expert,
                          uint32_t num_tokens) {
  if (unloads_idle()) Touch(expert);
  if (!has_transients_) return;
  if (num_tokens > 0) last_use_[expert] = turn_;
  const uint64_t run = uint64_t{run_[expert]} + num_tokens;
  run_[expert] =
      static_cast<uint32_t>(std::min<uint64_t>(run, options_.load_after));
  if (!transients_.Contains(expert)) return;
  transients_.Remove(expert);
  if (!Earned(expert)) transients_.Append(size_class, expert);
}

void ExpertPoolRules::Remove(uint32_t expert) {
  if (unloads_idle()) by_use_.Remove(expert);
  if (IsTransient(expert)) transients_.Remove(expert);
}

// What a guess has brought is no transient where no use need be earned.
bool ExpertPoolRules::Earned(uint32_t expert) const {
  if (is_never_kept_[expert] != 0) return false;
  return options_.load_after <= 1 || run_[expert] >= options_.load_after;
}

void ExpertPoolRules::Touch(uint32_t expert) {
  if (by_use_.Contains(expert)) by_use_.Remove(expert);
  by_use_.Append(0, expert);
  used_seconds_[expert] = now_seconds_;
}

uint32_t ExpertPoolRules::Transient(uint32_t size_class,
                                    std::span<const uint32_t> pins) const {
  return has_transients_ ? OldestFree(transients_, size_class, pins)
                         : kNoExpert;
}

uint32_t ExpertPoolRules::Idle(std::span<const uint32_t> pins) const {
  const uint32_t expert = OldestFree(by_use_, 0, pins);
  if (expert == kNoExpert) return kNoExpert;
  const double idle_seconds = now_seconds_ - used_seconds_[expert];
  return idle_seconds >= options_.unload_idle_seconds ? expert : kNoExpert;
}

}  // namespace muster::experts

#include "runtime/prefetch_governor.h"

#include <algorithm>

namespace muster::runtime {
namespace {

// Forwards, then backwards, so that none is always behind the same other.
uint32_t ChoiceOfWindow(uint32_t window) {
  constexpr uint32_t kNum = PrefetchGovernor::kNumChoices;
  const uint32_t place = window % kNum;
  return (window / kNum) % 2 == 0 ? place : kNum - 1 - place;
}

// REQUIRES: not empty.
double Median(std::vector<double> values) {
  const auto middle =
      values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

uint32_t PrefetchGovernor::layers_ahead() const {
  if (fixed_) return *fixed_;
  if (in_trial_) return ChoiceOfWindow(window_);
  return last_trial_ ? last_trial_->chosen : 0;
}

void PrefetchGovernor::EndStep(size_t num_rows, double seconds) {
  if (fixed_) return;
  if (!in_trial_) {
    in_trial_ = --left_steps_ == 0;
    return;
  }
  if (num_rows != window_rows_) {
    BeginWindow();
    window_rows_ = num_rows;
  }
  if (++window_steps_ > 1) window_seconds_ += seconds;
  if (window_steps_ == kWindowSteps) EndWindow();
}

void PrefetchGovernor::BeginWindow() {
  window_steps_ = 0;
  window_seconds_ = 0;
}

void PrefetchGovernor::EndWindow() {
  measured_[ChoiceOfWindow(window_)].push_back(window_seconds_ /
                                               (kWindowSteps - 1));
  BeginWindow();
  if (++window_ == kTrialWindows * kNumChoices) EndTrial();
}

void PrefetchGovernor::EndTrial() {
  Trial trial;
  for (uint32_t choice = 0; choice < kNumChoices; ++choice) {
    trial.step_seconds[choice] = Median(measured_[choice]);
    measured_[choice].clear();
  }
  const auto best = std::min_element(trial.step_seconds.begin() + 1,
                                     trial.step_seconds.end());
  if (*best < (1 - kLeastGain) * trial.step_seconds[0]) {
    trial.chosen = static_cast<uint32_t>(best - trial.step_seconds.begin());
  }
  const bool same = last_trial_ && last_trial_->chosen == trial.chosen;
  stay_steps_ = same ? std::min(2 * stay_steps_, kLongestStay) : kFirstStay;
  last_trial_ = trial;
  left_steps_ = stay_steps_;
  in_trial_ = false;
  window_ = 0;
}

}  // namespace muster::runtime

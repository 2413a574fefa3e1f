// How many layers ahead the experts of single tokens are guessed and read:
// whether a guess pays depends on the model, the text, the cache and the disk,
// so it is tried out while the answer runs. Guesses change no result.
//
// At first there is none: a cache that still fills says nothing about later.
// Then a trial runs short windows of steps with every number of layers in
// turns, so that what else happens on the machine hits all of them. It compares
// the medians of the windows' seconds a step; guessing has to win clearly, else
// there is none. Then the winner stays, and a later trial looks again: the
// later, the more often the same has won.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace muster::runtime {

// Knows no clock: the caller tells it the time. One thread at a time.
class PrefetchGovernor {
 public:
  static constexpr uint32_t kMostLayersAhead = 2;
  static constexpr uint32_t kNumChoices = kMostLayersAhead + 1;
  // A window's first step still finds what the choice before has read: it is
  // not measured.
  static constexpr uint32_t kWindowSteps = 9;
  static constexpr uint32_t kTrialWindows = 3;  // of each choice
  static constexpr uint32_t kTrialSteps =
      kWindowSteps * kTrialWindows * kNumChoices;
  static constexpr uint64_t kStepsBefore = 256;  // the first trial
  static constexpr uint64_t kFirstStay = 512;    // steps until the next trial
  static constexpr uint64_t kLongestStay = 8192;
  static constexpr double kLeastGain = 0.02;  // of a step's time

  // Set: no trials, always so many layers, 0: none.
  explicit PrefetchGovernor(std::optional<uint32_t> fixed) : fixed_(fixed) {}

  // For the next step: 0 to kMostLayersAhead, or what was fixed.
  uint32_t layers_ahead() const;

  // A step with so many rows is over. Steps of other numbers of rows are not
  // compared with one another: the window begins anew.
  void EndStep(size_t num_rows, double seconds);

  // Of the last whole trial: seconds a step for each number of layers.
  struct Trial {
    uint32_t chosen = 0;
    std::array<double, kNumChoices> step_seconds{};

    // What a step gains by what was chosen.
    double gained_seconds() const {
      return step_seconds[0] - step_seconds[chosen];
    }
  };
  // None until one has ended.
  const std::optional<Trial>& last_trial() const { return last_trial_; }

 private:
  void EndWindow();
  void EndTrial();
  void BeginWindow();

  const std::optional<uint32_t> fixed_;
  bool in_trial_ = false;
  uint32_t window_ = 0;  // of the trial
  uint32_t window_steps_ = 0;
  double window_seconds_ = 0;
  size_t window_rows_ = 0;
  std::array<std::vector<double>, kNumChoices> measured_;  // seconds a step
  uint64_t stay_steps_ = kFirstStay;
  uint64_t left_steps_ = kStepsBefore;  // until the next trial
  std::optional<Trial> last_trial_;
};

}  // namespace muster::runtime

// What the user wants of the hot tier beside its eviction policy: experts that
// stay, experts that earn their place first, experts that nobody has used for a
// while. Bookkeeping only; expert_cache.h asks and acts.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "experts/expert_table.h"
#include "experts/recency_lists.h"

namespace muster::experts {

struct PoolOptions {
  // An expert with fewer uses in a row than this is a transient: resident like
  // others, but the first to go when room is needed.
  uint32_t load_after = 1;
  // Experts that no step has used for so long are given up; 0: never.
  double unload_idle_seconds = 0;
  std::vector<uint32_t> pinned;      // never evicted; distinct
  std::vector<uint32_t> never_kept;  // always transients; distinct
  // Seconds of a clock that never goes back; empty: the machine's. Asked only
  // where unload_idle_seconds is set.
  std::function<double()> now_seconds;
};

// Uses are counted by tokens, so that it does not matter how a text is cut into
// steps: a prompt's step that sends three tokens to an expert has used it three
// times, as three steps of one token would have. A row of uses breaks when a
// step wants an expert that is absent and that no step has used for more than
// `run_window_turns` layer turns. It does not break while the expert is
// resident, nor when it was evicted for less than that.
// An expert that is in none of the lists costs nothing here; all operations are
// O(1), but for those that pass over pinned experts. One thread at a time.
class ExpertPoolRules {
 public:
  // As many layer turns as this many steps take.
  static constexpr uint64_t kRunWindowSteps = 8;

  //   num_classes: sizes of experts; each makes room for its own kind
  ExpertPoolRules(const PoolOptions& options, const ExpertTable& table,
                  uint32_t num_classes);

  bool IsPinned(uint32_t expert) const { return is_pinned_[expert] != 0; }

  void BeginTurn() { ++turn_; }
  // As EvictionPolicy, of experts that are not pinned.
  void Insert(uint32_t size_class, uint32_t expert, uint32_t num_tokens);
  void Use(uint32_t size_class, uint32_t expert, uint32_t num_tokens);
  void Remove(uint32_t expert);

  // The transient of that size to go first; kNoExpert: there is none.
  //   pins: [num_experts], 0: may go
  uint32_t Transient(uint32_t size_class, std::span<const uint32_t> pins) const;
  bool IsTransient(uint32_t expert) const {
    return has_transients_ && transients_.Contains(expert);
  }

  bool unloads_idle() const { return options_.unload_idle_seconds > 0; }
  // Reads the clock; what is used from now on is used at that time.
  // REQUIRES: unloads_idle().
  void ReadClock() { now_seconds_ = options_.now_seconds(); }
  // One that no step has used for too long by then; kNoExpert: there is none.
  uint32_t Idle(std::span<const uint32_t> pins) const;

  uint64_t run_window_turns() const { return run_window_turns_; }

 private:
  bool Earned(uint32_t expert) const;
  void Touch(uint32_t expert);

  PoolOptions options_;
  const bool has_transients_;
  const uint64_t run_window_turns_;
  uint64_t turn_ = 0;
  double now_seconds_ = 0;
  std::vector<uint8_t> is_pinned_;      // [num_experts]
  std::vector<uint8_t> is_never_kept_;  // [num_experts]
  // Where there can be transients; else empty.
  std::vector<uint32_t> run_;  // [num_experts] uses in a row, to load_after
  std::vector<uint64_t> last_use_;  // [num_experts] turn
  RecencyLists transients_;         // a list for each size
  // Where idle experts go; else empty.
  std::vector<double> used_seconds_;  // [num_experts]
  RecencyLists by_use_;               // one list
};

}  // namespace muster::experts

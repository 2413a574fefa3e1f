// For tests: a fetcher that needs no files, and a small table of experts.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experts/expert_fetcher.h"
#include "experts/expert_table.h"

namespace muster::experts {

inline constexpr size_t kBytes = kExpertAlignment;

// Writes the expert's number into its slot, one expert a Wait, in an order of
// its own; fails as often as it is told.
class FakeFetcher final : public ExpertFetcher {
 public:
  struct Script {
    size_t max_in_flight = 4;
    bool last_first = false;
    bool lands_unasked = false;  // one at each Wait, though it asks for none
    std::map<uint32_t, int> failures;  // expert -> how many times it fails
    size_t num_starts = 0;
  };
  explicit FakeFetcher(Script* script) : script_(script) {}

  std::string Name() const override { return "fake"; }
  bool CanStart() const override {
    return flights_.size() < script_->max_in_flight;
  }
  size_t num_in_flight() const override { return flights_.size(); }
  void Start(uint32_t expert, std::byte* slot) override {
    ++script_->num_starts;
    std::memset(slot, 0xee, kBytes);  // not the expert yet
    flights_.push_back({expert, slot});
  }
  void Wait(size_t min_done, ThreadPool&, std::vector<Fetched>* done) override {
    const size_t num_done = script_->lands_unasked ? 1 : min_done;
    for (size_t i = 0; i < num_done; ++i) {
      if (script_->last_first)
        std::rotate(flights_.rbegin(), flights_.rbegin() + 1, flights_.rend());
      const auto [expert, slot] = flights_.front();
      flights_.pop_front();
      if (script_->failures[expert]-- > 0) {
        done->push_back({expert, Corrupt("wrong checksum")});
        continue;
      }
      std::memset(slot, static_cast<int>(expert + 1), kBytes);
      done->push_back({expert, {}});
    }
  }
  FetchCounters counters() const override { return {}; }

 private:
  Script* script_;
  std::deque<std::pair<uint32_t, std::byte*>> flights_;
};

inline ExpertTable TwoLayers() {
  ExpertLayout layout{.size_bytes = kBytes};
  return ExpertTable({{.num_experts = 6, .top_k = 2, .layout = layout},
                      {.num_experts = 6, .top_k = 2, .layout = layout}});
}

}  // namespace muster::experts

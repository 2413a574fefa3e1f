// A model's experts across the tiers, as a step sees them: it names the experts
// that a layer needs and is handed them as they come into memory, so that it
// computes on some while others are read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"
#include "experts/expert_cache.h"
#include "experts/expert_fetcher.h"
#include "experts/expert_table.h"
#include "model/weights.h"
#include "telemetry/tier_counters.h"

namespace muster::experts {

// How far a guess may go.
struct GuessLimits {
  // It waits while so many reads are under way.
  size_t most_in_flight = std::numeric_limits<size_t>::max();
  // It evicts no expert that was loaded or used within so many turns.
  uint64_t spare_turns = 0;
};

// Where it says so it blocks on reads. One thread at a time: whoever shares a
// model shares its tiers, and takes turns with them step by step.
class ExpertTiers {
 public:
  // `fetcher` brings experts of `table`. With `copies`, a table of the same
  // experts in fewer bytes, it also brings these: the copy of an expert has its
  // number plus that of all experts. They share the budget (CopyBytes).
  static Result<std::unique_ptr<ExpertTiers>> Create(
      ExpertTable table, std::unique_ptr<ExpertFetcher> fetcher,
      const CacheOptions& options,
      std::optional<ExpertTable> copies = std::nullopt);
  ~ExpertTiers();

  // What of a budget low-bit copies take: a thirty-second, as long as that is
  // neither less than one token's of a layer nor more than all.
  static uint64_t CopyBytes(const ExpertTable& copies, uint64_t budget_bytes);

  // Whether the expert is in memory or on its way there: what routing that
  // looks at the cache asks before a turn.
  bool IsInMemory(uint32_t layer, uint32_t index) const {
    return cache_->state(table_.Number({layer, index})) !=
           ExpertCache::State::kAbsent;
  }

  // For the counters: of so many choices, these stand in for another expert.
  void CountChoices(uint64_t num_choices, uint64_t num_replaced) {
    counters_.aware_choices += num_choices;
    counters_.replaced_choices += num_replaced;
  }

  // A layer's turn: the step needs these experts of it. Reads of those that are
  // not in memory start at once, as far as there is room. Ends the turn before.
  // Where copies are allowed, an expert that is neither in memory nor on its
  // way is not read: its low-bit copy takes its place for this turn.
  //   ids: ascending, distinct;   num_tokens: that use each of them
  //   may_be_copies: of each of them; empty: none may. REQUIRES: empty unless
  //   there are copies
  void Begin(uint32_t layer, std::span<const uint32_t> ids,
             std::span<const uint32_t> num_tokens,
             std::span<const uint8_t> may_be_copies = {});

  // After Begin: whether all of these experts, or any, were in memory, be it as
  // copies.
  bool AllInMemory() const { return handed_out_.size() == ids_.size(); }
  bool AnyInMemory() const { return !handed_out_.empty(); }

  // The next of these experts that are in memory, as positions in `ids`; empty
  // when all have been handed out. At first those that were there all along,
  // then as they come, waiting for one at least. What it handed out before may
  // be evicted from this call on. Fails when an expert cannot be had from any
  // tier, naming it; the turn is over then.
  Result<std::span<const uint32_t>> Next(ThreadPool& pool);

  // The next turns may need these experts of up to kMostLayersAhead layers
  // behind this one, most likely first: they are read behind what the turns
  // ask for, into at most a quarter of the cache, and stay until their layer's
  // turn. What of them has not begun by the next Begin is forgotten.
  // REQUIRES: a turn.
  void Guess(std::span<const routing::ExpertId> experts,
             const GuessLimits& limits);
  static constexpr uint32_t kMostLayersAhead = 3;

  // For the counters: a layer called so many experts, and so many of them had
  // been foreseen, whether they had to be read or not.
  void CountForeseen(uint64_t num_called, uint64_t num_foreseen) {
    counters_.called_experts += num_called;
    counters_.foreseen_experts += num_foreseen;
  }

  // Takes in what has come and starts what can be started, without waiting: for
  // a step that computes something else meanwhile. Failures show in Next.
  // REQUIRES: no turn, or all of its experts have been handed out.
  void Pump(ThreadPool& pool);

  // Ends the turn: what it was handed may be evicted. Begin does this too.
  void End();

  // Of an expert that Next has handed out last, or of the copy in its place.
  const model::ExpertWeights& Weights(uint32_t layer, uint32_t index) const {
    return weights_[entry_of_[table_.Number({layer, index})]];
  }

  // Reads these experts, in this order, and waits until they are there. Others
  // make room where there is none left, though none that was read for the same
  // call while its reads are in flight. One that cannot be had is left out: a
  // step that wants it will say so. `done_bytes` may be null. REQUIRES: no
  // turn.
  void Preload(std::span<const uint32_t> experts, ThreadPool& pool,
               std::atomic<uint64_t>* done_bytes);

  // Those that are pinned for good (PoolOptions), unless they are there. Fails
  // as Next. REQUIRES: no turn.
  Status LoadPinned(ThreadPool& pool);

  // From now on, experts that nobody has called come in too while there is room
  // without an eviction, layer by layer: behind every other read, and only
  // while turns and Pump go on. One that cannot be read is left to the step
  // that wants it.
  void FillBehind() { next_to_fill_ = 0; }

  // See ExpertCache; of a resident that Preload has brought.
  void Prime(uint32_t expert, uint32_t num_tokens) {
    cache_->Prime(expert, num_tokens);
  }

  // See ExpertCache. Waits for reads that nobody waits for any more, and loads
  // pinned experts anew. REQUIRES: no turn.
  Status SetBudget(uint64_t budget_bytes, ThreadPool& pool);

  const ExpertTable& table() const { return table_; }
  // Null: none.
  const ExpertTable* copies() const { return copies_ ? &*copies_ : nullptr; }
  const ExpertCache& cache() const { return *cache_; }
  const ExpertFetcher& fetcher() const { return *fetcher_; }
  telemetry::TierCounters counters() const;

 private:
  ExpertTiers(ExpertTable table, std::unique_ptr<ExpertFetcher> fetcher,
              std::optional<ExpertTable> copies);

  static constexpr uint32_t kUnwanted = 0xffffffff;

  // An entry is an expert by its number or, behind all of them, the low-bit
  // copy of one.
  uint32_t num_entries() const {
    return (copies_ ? 2 : 1) * table_.num_experts();
  }
  bool IsCopy(uint32_t entry) const { return entry >= table_.num_experts(); }
  uint32_t ExpertOf(uint32_t entry) const {
    return IsCopy(entry) ? entry - table_.num_experts() : entry;
  }
  const ExpertTable& TableOf(uint32_t entry) const {
    return IsCopy(entry) ? *copies_ : table_;
  }
  ExpertCache& CacheOf(uint32_t entry) {
    return IsCopy(entry) ? *copy_cache_ : *cache_;
  }
  bool PinEntry(uint32_t entry, uint32_t num_tokens) {
    return CacheOf(entry).Pin(ExpertOf(entry), num_tokens);
  }
  ExpertCache::State StateOf(uint32_t entry) {
    return CacheOf(entry).state(ExpertOf(entry));
  }
  size_t SizeBytes(uint32_t entry) const {
    return TableOf(entry).SizeBytes(ExpertOf(entry));
  }

  uint32_t EntryFor(uint32_t expert, bool may_be_copy);
  void ReleaseHandedOut();
  void StartReads();
  void StartGuesses();
  void StartFilling();
  void TakeGuess(uint32_t expert);
  bool IsAhead(uint32_t expert) const;
  void ReleaseGuesses(bool ahead_too);
  void Start(uint32_t entry);
  Status TakeIn(const Fetched& fetched);
  Status HandleFailure(const Fetched& fetched);

  ExpertTable table_;
  std::optional<ExpertTable> copies_;
  std::unique_ptr<ExpertCache> cache_;
  std::unique_ptr<ExpertCache> copy_cache_;  // null: no copies
  std::unique_ptr<ExpertFetcher> fetcher_;
  std::vector<model::ExpertWeights> weights_;  // [entries], of resident ones
  std::vector<uint32_t> pinned_;               // for good
  std::vector<uint8_t> num_tries_;             // [entries], of loading ones
  std::vector<uint8_t> is_guess_;  // [experts], read on a guess, not used yet
  std::vector<uint8_t> is_held_;   // [experts], for the turn it is guessed for

  uint32_t next_to_fill_ = UINT32_MAX;  // experts from there on

  // The turn.
  uint32_t layer_ = 0;
  bool handed_out_first_ = false;
  std::vector<uint32_t> handed_out_;   // positions
  std::vector<uint32_t> num_tokens_;   // by position
  std::vector<uint32_t> ids_;          // the layer's experts, by position
  std::vector<uint32_t> missing_;      // entries whose read has not begun
  std::vector<uint32_t> position_of_;  // [entries], kUnwanted: not waited for
  std::vector<uint32_t> entry_of_;     // [experts], what stands for each
  std::vector<uint32_t> guesses_;      // experts, the likeliest last
  GuessLimits guess_limits_;
  std::vector<uint32_t> held_;  // experts, of is_held_
  uint64_t held_bytes_ = 0;
  size_t num_awaited_ = 0;  // that are not kUnwanted
  std::vector<Fetched> fetched_;
  telemetry::TierCounters counters_;
};

}  // namespace muster::experts

// The hot tier's books: which experts are in memory, where, and who holds them.
// It moves no bytes: the caller fills the slot that Reserve gives and says when
// it has (expert_tiers.h).
//
//   absent --Reserve--> loading --Publish--> resident --(Reserve of another)-->
//   absent;  loading --Abandon--> absent
//
// A slot is taken from its expert only while nobody pins that expert, so no
// slot is reused while a read or a kernel touches it (CASES C01, C02).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "experts/eviction_policy.h"
#include "experts/expert_pool_rules.h"
#include "experts/expert_table.h"
#include "experts/residency.h"
#include "experts/slot_arena.h"
#include "experts/slot_populator.h"

namespace muster::experts {

struct CacheOptions {
  uint64_t budget_bytes = 0;
  std::string policy = "lfru";
  PoolOptions pool;
  // A thread makes the memory of slots ready before they are taken.
  bool populate_ahead = false;
};

// One thread at a time.
class ExpertCache {
 public:
  enum class State : uint8_t { kAbsent, kLoading, kResident };

  // The least that a model can run with: one token's experts of one layer, for
  // each size of expert (CASES C04).
  static uint64_t FloorBytes(const ExpertTable& table);

  // Fails with kResourceExhausted below the floor, naming it, and with
  // kInvalidArgument on an unknown policy or an expert that is pinned for good
  // and never kept. Experts pinned for good need room beside the floor.
  // `table` must outlive the cache.
  static Result<std::unique_ptr<ExpertCache>> Create(
      const ExpertTable& table, const CacheOptions& options);

  State state(uint32_t expert) const { return entries_[expert].state; }
  // REQUIRES: not absent.
  std::byte* slot(uint32_t expert);

  // The step has come to this layer.
  void BeginLayer(uint32_t layer);

  // Pins the expert where it is resident, for so many tokens; else false.
  bool Pin(uint32_t expert, uint32_t num_tokens);
  // REQUIRES: a pin of it is held.
  void Unpin(uint32_t expert);

  // Room for an expert, giving up others if it must; the expert is loading
  // then, and pinned. False when all room is pinned: nothing has changed.
  // Nor does an expert go for it that was loaded or used within `spare_turns`.
  // REQUIRES: absent.
  bool Reserve(uint32_t expert, uint64_t spare_turns = 0);
  // Its bytes are in place and verified, for so many tokens; 0: nobody wants it
  // yet. It stays pinned. REQUIRES: loading.
  void Publish(uint32_t expert, uint32_t num_tokens);
  // They are not, and will not be. REQUIRES: loading.
  void Abandon(uint32_t expert);

  // A resident counts for the policy as if so many tokens had used it now, but
  // not as used. REQUIRES: resident.
  void Prime(uint32_t expert, uint32_t num_tokens);

  // Gives up what has been idle for too long, and its memory; nothing where
  // that was not asked for (expert_pool_rules.h).
  void EvictIdle();

  // Gives up what is above the new budget, at once, experts pinned for good
  // among them: the caller loads them anew. Fails with kResourceExhausted below
  // the floor: nothing has changed then.
  // REQUIRES: nothing is pinned or loading.
  Status SetBudget(uint64_t budget_bytes);

  uint64_t budget_bytes() const { return budget_bytes_; }
  // Of the slots within the budget, used or not.
  uint64_t capacity_bytes() const;
  uint64_t resident_bytes() const { return resident_bytes_; }
  uint32_t num_resident() const { return num_resident_; }
  // How many experts of this one's size have room.
  size_t CapacityOf(uint32_t expert) const;
  // How many more have room without an eviction.
  size_t FreeSlotsFor(uint32_t expert) const;
  uint64_t num_evictions() const { return num_evictions_; }
  // Of them, those of transients and of idle ones.
  uint64_t num_transient_evictions() const { return num_transient_evictions_; }
  uint64_t num_idle_evictions() const { return num_idle_evictions_; }
  bool IsTransient(uint32_t expert) const { return rules_.IsTransient(expert); }
  const Residency& residency() const { return residency_; }

 private:
  struct Entry {
    State state = State::kAbsent;
    uint32_t slot = 0;
  };
  // Experts of one size share slots and a policy.
  struct SizeClass {
    size_t slot_bytes = 0;
    size_t num_experts = 0;
    size_t floor_slots = 0;
    size_t num_pinned = 0;  // for good; within the floor
    size_t num_slots = 0;   // within the budget
    std::unique_ptr<SlotArena> arena;
    std::unique_ptr<EvictionPolicy> policy;
    std::vector<uint32_t> free_slots;  // the last is taken first
  };

  static std::vector<SizeClass> ClassesOf(const ExpertTable& table,
                                          std::span<const uint32_t> pinned);
  static Status ShareOut(uint64_t budget_bytes,
                         std::vector<SizeClass>& classes);

  ExpertCache(const ExpertTable& table, const PoolOptions& pool);
  uint32_t ClassIndexOf(uint32_t expert) const {
    return class_of_layer_[table_.IdOf(expert).layer];
  }
  SizeClass& ClassOf(uint32_t expert) { return classes_[ClassIndexOf(expert)]; }
  void PopulateAhead();
  bool MakeRoom(uint32_t size_class, uint64_t spare_turns);
  void Evict(uint32_t expert);
  void EvictSlotsFrom(SizeClass& size_class, size_t first_slot);

  const ExpertTable& table_;
  uint64_t budget_bytes_ = 0;
  std::vector<SizeClass> classes_;
  std::vector<uint32_t> class_of_layer_;  // [layers]
  std::vector<Entry> entries_;            // [experts]
  std::vector<uint32_t> pins_;            // [experts]
  ExpertPoolRules rules_;
  Residency residency_;
  uint64_t resident_bytes_ = 0;
  uint32_t num_resident_ = 0;
  uint64_t num_evictions_ = 0;
  uint64_t num_transient_evictions_ = 0;
  uint64_t num_idle_evictions_ = 0;
  // Null: not asked for, or the budget has changed since. The last: it writes
  // to the arenas.
  std::unique_ptr<SlotPopulator> populator_;
};

}  // namespace muster::experts

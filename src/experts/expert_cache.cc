#include "experts/expert_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace muster::experts {
namespace {

// An expert cannot stay always and never.
Status CheckLists(const ExpertTable& table, const PoolOptions& pool) {
  for (const uint32_t expert : pool.pinned) {
    if (std::find(pool.never_kept.begin(), pool.never_kept.end(), expert) ==
        pool.never_kept.end()) {
      continue;
    }
    const routing::ExpertId id = table.IdOf(expert);
    return InvalidArgument(
        fmt::format("expert {} of layer {} is to be pinned and never kept",
                    id.index, id.layer));
  }
  return {};
}

// [layers]
std::vector<uint32_t> CountByLayer(const ExpertTable& table,
                                   std::span<const uint32_t> experts) {
  std::vector<uint32_t> counts(table.num_layers());
  for (const uint32_t expert : experts) ++counts[table.IdOf(expert).layer];
  return counts;
}

}  // namespace

// The floor is what a token can need of a layer beside what is pinned for good.
std::vector<ExpertCache::SizeClass> ExpertCache::ClassesOf(
    const ExpertTable& table, std::span<const uint32_t> pinned) {
  const std::vector<uint32_t> num_pinned = CountByLayer(table, pinned);
  std::vector<SizeClass> classes;
  for (uint32_t l = 0; l < table.num_layers(); ++l) {
    const ExpertTable::Layer& layer = table.layer(l);
    if (layer.num_experts == 0) continue;
    auto it = std::find_if(classes.begin(), classes.end(), [&](const auto& c) {
      return c.slot_bytes == layer.layout.size_bytes;
    });
    if (it == classes.end()) {
      it = classes.insert(it, SizeClass{.slot_bytes = layer.layout.size_bytes});
    }
    it->num_experts += layer.num_experts;
    it->num_pinned += num_pinned[l];
    it->floor_slots = std::max<size_t>(
        it->floor_slots,
        std::min(layer.top_k, layer.num_experts - num_pinned[l]));
  }
  for (SizeClass& c : classes) c.floor_slots += c.num_pinned;
  return classes;
}

uint64_t ExpertCache::FloorBytes(const ExpertTable& table) {
  uint64_t floor = 0;
  for (const SizeClass& c : ClassesOf(table, {})) {
    floor += uint64_t{c.floor_slots} * c.slot_bytes;
  }
  return floor;
}

// Each size gets the share of the budget that its experts have of all, but
// never less than its floor.
Status ExpertCache::ShareOut(uint64_t budget_bytes,
                             std::vector<SizeClass>& classes) {
  double total_bytes = 0;
  uint64_t floor_bytes = 0;
  uint64_t pinned_bytes = 0;
  for (const SizeClass& c : classes) {
    pinned_bytes += uint64_t{c.slot_bytes} * c.num_pinned;
    total_bytes += static_cast<double>(c.slot_bytes * c.num_experts);
    floor_bytes += uint64_t{c.slot_bytes} * c.floor_slots;
  }
  if (budget_bytes < floor_bytes) {
    return Status(
        Code::kResourceExhausted,
        fmt::format(
            "{} are left for experts, and one token's experts of a "
            "layer need {}{}. Give more memory (--ram), or take less "
            "for the context (--ctx, --kv q8)",
            FormatBytes(budget_bytes), FormatBytes(floor_bytes - pinned_bytes),
            pinned_bytes == 0 ? ""
                              : fmt::format(" beside the pinned ones' {}",
                                            FormatBytes(pinned_bytes))));
  }
  const auto spare = static_cast<double>(budget_bytes - floor_bytes);
  uint64_t left = budget_bytes;
  for (SizeClass& c : classes) {
    const double share =
        static_cast<double>(c.slot_bytes * c.num_experts) / total_bytes;
    const auto above =
        static_cast<size_t>(spare * share / static_cast<double>(c.slot_bytes));
    c.num_slots = std::min(c.num_experts, c.floor_slots + above);
    left -= c.num_slots * c.slot_bytes;
  }
  // What rounding left.
  for (SizeClass& c : classes) {
    const size_t more = std::min(c.num_experts - c.num_slots,
                                 static_cast<size_t>(left / c.slot_bytes));
    c.num_slots += more;
    left -= more * c.slot_bytes;
  }
  return {};
}

Result<std::unique_ptr<ExpertCache>> ExpertCache::Create(
    const ExpertTable& table, const CacheOptions& options) {
  RETURN_IF_ERROR(CheckLists(table, options.pool));
  std::unique_ptr<ExpertCache> cache(new ExpertCache(table, options.pool));
  RETURN_IF_ERROR(ShareOut(options.budget_bytes, cache->classes_));
  cache->budget_bytes_ = options.budget_bytes;
  for (SizeClass& c : cache->classes_) {
    ASSIGN_OR_RETURN(c.policy,
                     MakeEvictionPolicy(options.policy, table.Shape()));
    c.arena = std::make_unique<SlotArena>(c.slot_bytes, c.num_experts);
    for (size_t i = c.num_slots; i > 0; --i) {
      c.free_slots.push_back(static_cast<uint32_t>(i - 1));
    }
  }
  if (options.populate_ahead) cache->PopulateAhead();
  return cache;
}

void ExpertCache::PopulateAhead() {
  std::vector<SlotPopulator::Room> rooms;
  for (const SizeClass& c : classes_) {
    rooms.push_back({.arena = c.arena.get(), .num_slots = c.num_slots});
  }
  populator_ = std::make_unique<SlotPopulator>(rooms);
}

ExpertCache::ExpertCache(const ExpertTable& table, const PoolOptions& pool)
    : table_(table),
      classes_(ClassesOf(table, pool.pinned)),
      class_of_layer_(table.num_layers()),
      entries_(table.num_experts()),
      pins_(table.num_experts()),
      rules_(pool, table, static_cast<uint32_t>(classes_.size())),
      residency_(table.num_experts()) {
  for (uint32_t l = 0; l < table.num_layers(); ++l) {
    for (uint32_t c = 0; c < classes_.size(); ++c) {
      if (classes_[c].slot_bytes == table.layer(l).layout.size_bytes) {
        class_of_layer_[l] = c;
      }
    }
  }
}

std::byte* ExpertCache::slot(uint32_t expert) {
  CHECK(entries_[expert].state != State::kAbsent);
  return ClassOf(expert).arena->slot(entries_[expert].slot);
}

void ExpertCache::BeginLayer(uint32_t layer) {
  for (SizeClass& c : classes_) c.policy->BeginLayer(layer);
  residency_.BeginTurn();
  rules_.BeginTurn();
}

bool ExpertCache::Pin(uint32_t expert, uint32_t num_tokens) {
  if (entries_[expert].state != State::kResident) return false;
  ++pins_[expert];
  residency_.Use(expert, num_tokens);
  if (rules_.IsPinned(expert)) return true;
  rules_.Use(ClassIndexOf(expert), expert, num_tokens);
  ClassOf(expert).policy->Use(expert, num_tokens);
  return true;
}

void ExpertCache::Prime(uint32_t expert, uint32_t num_tokens) {
  CHECK(entries_[expert].state == State::kResident);
  if (rules_.IsPinned(expert)) return;
  rules_.Use(ClassIndexOf(expert), expert, num_tokens);
  ClassOf(expert).policy->Use(expert, num_tokens);
}

void ExpertCache::Unpin(uint32_t expert) {
  CHECK_GT(pins_[expert], 0u);
  --pins_[expert];
}

bool ExpertCache::Reserve(uint32_t expert, uint64_t spare_turns) {
  CHECK(entries_[expert].state == State::kAbsent);
  SizeClass& size_class = ClassOf(expert);
  if (size_class.free_slots.empty() &&
      !MakeRoom(ClassIndexOf(expert), spare_turns)) {
    return false;
  }
  entries_[expert] = {State::kLoading, size_class.free_slots.back()};
  size_class.free_slots.pop_back();
  if (populator_ != nullptr) {
    populator_->Take(ClassIndexOf(expert), entries_[expert].slot);
  }
  ++pins_[expert];
  return true;
}

// Transients first; then whom the policy names.
bool ExpertCache::MakeRoom(uint32_t size_class, uint64_t spare_turns) {
  uint32_t victim = rules_.Transient(size_class, pins_);
  const bool is_transient = victim != kNoExpert;
  if (!is_transient) victim = classes_[size_class].policy->Victim(pins_);
  if (victim == kNoExpert || residency_.IdleTurns(victim) < spare_turns) {
    return false;
  }
  if (is_transient) ++num_transient_evictions_;
  Evict(victim);
  return true;
}

void ExpertCache::EvictIdle() {
  if (!rules_.unloads_idle()) return;
  rules_.ReadClock();
  for (uint32_t expert = rules_.Idle(pins_); expert != kNoExpert;
       expert = rules_.Idle(pins_)) {
    ClassOf(expert).arena->DiscardSlot(entries_[expert].slot);
    Evict(expert);
    ++num_idle_evictions_;
  }
}

void ExpertCache::Publish(uint32_t expert, uint32_t num_tokens) {
  CHECK(entries_[expert].state == State::kLoading);
  entries_[expert].state = State::kResident;
  residency_.Load(expert);
  if (num_tokens > 0) residency_.Use(expert, num_tokens);
  if (!rules_.IsPinned(expert)) {
    rules_.Insert(ClassIndexOf(expert), expert, num_tokens);
    ClassOf(expert).policy->Insert(expert, num_tokens);
  }
  resident_bytes_ += table_.SizeBytes(expert);
  ++num_resident_;
}

void ExpertCache::Abandon(uint32_t expert) {
  CHECK(entries_[expert].state == State::kLoading);
  Unpin(expert);
  ClassOf(expert).free_slots.push_back(entries_[expert].slot);
  entries_[expert].state = State::kAbsent;
}

void ExpertCache::Evict(uint32_t expert) {
  CHECK(entries_[expert].state == State::kResident);
  CHECK_EQ(pins_[expert], 0u);
  SizeClass& size_class = ClassOf(expert);
  residency_.Evict(expert);
  if (!rules_.IsPinned(expert)) {
    rules_.Remove(expert);
    size_class.policy->Remove(expert);
  }
  size_class.free_slots.push_back(entries_[expert].slot);
  entries_[expert].state = State::kAbsent;
  resident_bytes_ -= table_.SizeBytes(expert);
  --num_resident_;
  ++num_evictions_;
}

Status ExpertCache::SetBudget(uint64_t budget_bytes) {
  std::vector<size_t> before;
  for (const SizeClass& c : classes_) before.push_back(c.num_slots);
  RETURN_IF_ERROR(ShareOut(budget_bytes, classes_));
  budget_bytes_ = budget_bytes;
  populator_.reset();  // it knows the old number of slots
  for (size_t i = 0; i < classes_.size(); ++i) {
    SizeClass& c = classes_[i];
    if (c.num_slots < before[i]) EvictSlotsFrom(c, c.num_slots);
    for (size_t slot = before[i]; slot < c.num_slots; ++slot) {
      c.free_slots.push_back(static_cast<uint32_t>(slot));
    }
  }
  return {};
}

void ExpertCache::EvictSlotsFrom(SizeClass& size_class, size_t first_slot) {
  for (uint32_t expert = 0; expert < entries_.size(); ++expert) {
    if (&ClassOf(expert) != &size_class ||
        entries_[expert].state == State::kAbsent ||
        entries_[expert].slot < first_slot) {
      continue;
    }
    Evict(expert);
  }
  std::erase_if(size_class.free_slots,
                [&](uint32_t slot) { return slot >= first_slot; });
  size_class.arena->Discard(first_slot);
}

uint64_t ExpertCache::capacity_bytes() const {
  uint64_t total = 0;
  for (const SizeClass& c : classes_) total += c.num_slots * c.slot_bytes;
  return total;
}

size_t ExpertCache::CapacityOf(uint32_t expert) const {
  return classes_[ClassIndexOf(expert)].num_slots;
}

size_t ExpertCache::FreeSlotsFor(uint32_t expert) const {
  return classes_[ClassIndexOf(expert)].free_slots.size();
}

}  // namespace muster::experts

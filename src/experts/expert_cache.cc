#include "experts/expert_cache.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/units.h"

namespace muster::experts {

std::vector<ExpertCache::SizeClass> ExpertCache::ClassesOf(
    const ExpertTable& table) {
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
    it->floor_slots = std::max<size_t>(it->floor_slots, layer.top_k);
  }
  return classes;
}

uint64_t ExpertCache::FloorBytes(const ExpertTable& table) {
  uint64_t floor = 0;
  for (const SizeClass& c : ClassesOf(table)) {
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
  for (const SizeClass& c : classes) {
    total_bytes += static_cast<double>(c.slot_bytes * c.num_experts);
    floor_bytes += uint64_t{c.slot_bytes} * c.floor_slots;
  }
  if (budget_bytes < floor_bytes) {
    return Status(
        Code::kResourceExhausted,
        fmt::format("{} are left for experts, and one token's experts of a "
                    "layer need {}. Give more memory (--ram), or take less for "
                    "the context (--ctx, --kv q8)",
                    FormatBytes(budget_bytes), FormatBytes(floor_bytes)));
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
  std::unique_ptr<ExpertCache> cache(new ExpertCache(table));
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
  return cache;
}

ExpertCache::ExpertCache(const ExpertTable& table)
    : table_(table),
      classes_(ClassesOf(table)),
      class_of_layer_(table.num_layers()),
      entries_(table.num_experts()),
      pins_(table.num_experts()) {
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
}

bool ExpertCache::Pin(uint32_t expert, uint32_t num_tokens) {
  if (entries_[expert].state != State::kResident) return false;
  ++pins_[expert];
  ClassOf(expert).policy->Use(expert, num_tokens);
  return true;
}

void ExpertCache::Unpin(uint32_t expert) {
  CHECK_GT(pins_[expert], 0u);
  --pins_[expert];
}

bool ExpertCache::Reserve(uint32_t expert) {
  CHECK(entries_[expert].state == State::kAbsent);
  SizeClass& size_class = ClassOf(expert);
  if (size_class.free_slots.empty()) {
    const uint32_t victim = size_class.policy->Victim(pins_);
    if (victim == kNoExpert) return false;
    Evict(victim);
    ++num_evictions_;
  }
  entries_[expert] = {State::kLoading, size_class.free_slots.back()};
  size_class.free_slots.pop_back();
  ++pins_[expert];
  return true;
}

void ExpertCache::Publish(uint32_t expert, uint32_t num_tokens) {
  CHECK(entries_[expert].state == State::kLoading);
  entries_[expert].state = State::kResident;
  ClassOf(expert).policy->Insert(expert, num_tokens);
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
  size_class.policy->Remove(expert);
  size_class.free_slots.push_back(entries_[expert].slot);
  entries_[expert].state = State::kAbsent;
  resident_bytes_ -= table_.SizeBytes(expert);
  --num_resident_;
}

Status ExpertCache::SetBudget(uint64_t budget_bytes) {
  std::vector<size_t> before;
  for (const SizeClass& c : classes_) before.push_back(c.num_slots);
  RETURN_IF_ERROR(ShareOut(budget_bytes, classes_));
  budget_bytes_ = budget_bytes;
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
    ++num_evictions_;
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
  return classes_[class_of_layer_[table_.IdOf(expert).layer]].num_slots;
}

}  // namespace muster::experts

#include "experts/expert_tiers.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace muster::experts {
namespace {

// A read that fails is tried again this often before its step fails.
constexpr uint8_t kMaxTries = 3;

// While so many are in flight, none starts that nobody has called: the next
// step's reads would have to wait for it.
constexpr size_t kMostReadsToFill = 4;

}  // namespace

Result<std::unique_ptr<ExpertTiers>> ExpertTiers::Create(
    ExpertTable table, std::unique_ptr<ExpertFetcher> fetcher,
    const CacheOptions& options, std::optional<ExpertTable> copies) {
  std::unique_ptr<ExpertTiers> tiers(
      new ExpertTiers(std::move(table), std::move(fetcher), std::move(copies)));
  CacheOptions own = options;
  if (tiers->copies_) {
    const uint64_t copy_bytes =
        CopyBytes(*tiers->copies_, options.budget_bytes);
    own.budget_bytes -= std::min(own.budget_bytes, copy_bytes);
    ASSIGN_OR_RETURN(
        tiers->copy_cache_,
        ExpertCache::Create(*tiers->copies_, {.budget_bytes = copy_bytes,
                                              .policy = options.policy}));
  }
  ASSIGN_OR_RETURN(tiers->cache_, ExpertCache::Create(tiers->table_, own));
  tiers->pinned_ = options.pool.pinned;
  return tiers;
}

uint64_t ExpertTiers::CopyBytes(const ExpertTable& copies,
                                uint64_t budget_bytes) {
  return std::clamp(budget_bytes / 32, ExpertCache::FloorBytes(copies),
                    copies.total_bytes());
}

ExpertTiers::ExpertTiers(ExpertTable table,
                         std::unique_ptr<ExpertFetcher> fetcher,
                         std::optional<ExpertTable> copies)
    : table_(std::move(table)),
      copies_(std::move(copies)),
      fetcher_(std::move(fetcher)),
      weights_(num_entries()),
      num_tries_(num_entries()),
      is_guess_(table_.num_experts()),
      is_held_(table_.num_experts()),
      position_of_(num_entries(), kUnwanted),
      entry_of_(table_.num_experts()) {
  CHECK(!copies_ || copies_->num_experts() == table_.num_experts());
  std::iota(entry_of_.begin(), entry_of_.end(), 0u);
}

ExpertTiers::~ExpertTiers() {
  fetcher_.reset();  // reads into the caches' slots end first
}

// What this turn computes with.
uint32_t ExpertTiers::EntryFor(uint32_t expert, bool may_be_copy) {
  const bool is_absent = cache_->state(expert) == ExpertCache::State::kAbsent;
  if (!may_be_copy || !is_absent) return expert;
  ++counters_.tail_experts;
  return table_.num_experts() + expert;
}

void ExpertTiers::Begin(uint32_t layer, std::span<const uint32_t> ids,
                        std::span<const uint32_t> num_tokens,
                        std::span<const uint8_t> may_be_copies) {
  CHECK(may_be_copies.empty() || copies_);
  End();
  layer_ = layer;
  handed_out_first_ = false;
  ids_.assign(ids.begin(), ids.end());
  num_tokens_.assign(num_tokens.begin(), num_tokens.end());
  guesses_.clear();
  cache_->BeginLayer(layer);
  if (copies_) copy_cache_->BeginLayer(layer);
  counters_.queries += ids.size();
  for (uint32_t position = 0; position < ids.size(); ++position) {
    const uint32_t expert = table_.Number({layer, ids[position]});
    TakeGuess(expert);
    const uint32_t entry = EntryFor(
        expert, !may_be_copies.empty() && may_be_copies[position] != 0);
    entry_of_[expert] = entry;
    if (PinEntry(entry, num_tokens[position])) {
      if (!IsCopy(entry)) ++counters_.hits;
      handed_out_.push_back(position);
      continue;
    }
    position_of_[entry] = position;
    ++num_awaited_;
    if (StateOf(entry) == ExpertCache::State::kAbsent) {
      missing_.push_back(entry);
    } else {
      if (!IsCopy(entry)) ++counters_.joined;
      num_tries_[entry] = 1;  // what failed before was another step's trouble
    }
  }
  ReleaseGuesses(false);
  cache_->EvictIdle();  // but what this turn has just pinned
  // The first is taken from the back.
  std::reverse(missing_.begin(), missing_.end());
  StartReads();
}

// What is in flight comes in later and stays, for whoever wants it then.
void ExpertTiers::End() {
  ReleaseHandedOut();
  missing_.clear();
  if (num_awaited_ == 0) return;
  for (const uint32_t id : ids_) {
    position_of_[entry_of_[table_.Number({layer_, id})]] = kUnwanted;
  }
  num_awaited_ = 0;
}

void ExpertTiers::ReleaseHandedOut() {
  for (const uint32_t position : handed_out_) {
    const uint32_t entry = entry_of_[table_.Number({layer_, ids_[position]})];
    CacheOf(entry).Unpin(ExpertOf(entry));
  }
  handed_out_.clear();
}

// What a turn asks for goes before what is kept for a later one.
void ExpertTiers::StartReads() {
  while (!missing_.empty() && fetcher_->CanStart()) {
    const uint32_t entry = missing_.back();
    if (!CacheOf(entry).Reserve(ExpertOf(entry))) {
      if (held_.empty() || IsCopy(entry)) break;
      ReleaseGuesses(true);
      continue;
    }
    Start(entry);
    missing_.pop_back();
  }
  if (missing_.empty()) StartGuesses();
  if (missing_.empty() && guesses_.empty()) StartFilling();
}

void ExpertTiers::Start(uint32_t entry) {
  num_tries_[entry] = 1;
  fetcher_->Start(entry, CacheOf(entry).slot(ExpertOf(entry)));
}

void ExpertTiers::Guess(std::span<const routing::ExpertId> experts,
                        const GuessLimits& limits) {
  guess_limits_ = limits;
  guesses_.clear();
  for (auto id = experts.rbegin(); id != experts.rend(); ++id) {
    guesses_.push_back(table_.Number(*id));
    CHECK(IsAhead(guesses_.back()));
  }
  if (missing_.empty()) StartGuesses();
}

void ExpertTiers::StartGuesses() {
  const uint64_t most_bytes = cache_->capacity_bytes() / 4;
  while (!guesses_.empty() && fetcher_->CanStart() &&
         fetcher_->num_in_flight() < guess_limits_.most_in_flight) {
    const uint32_t expert = guesses_.back();
    if (cache_->state(expert) == ExpertCache::State::kAbsent) {
      const uint64_t size_bytes = table_.SizeBytes(expert);
      if (held_bytes_ + size_bytes > most_bytes) return;
      if (!cache_->Reserve(expert, guess_limits_.spare_turns)) return;
      held_bytes_ += size_bytes;
      held_.push_back(expert);
      is_held_[expert] = 1;
      is_guess_[expert] = 1;
      ++counters_.guessed_experts;
      counters_.guessed_bytes += size_bytes;
      Start(expert);
    }
    guesses_.pop_back();
  }
}

// Whether the expert's layer comes soon behind that of the turn.
bool ExpertTiers::IsAhead(uint32_t expert) const {
  const uint32_t layer = table_.IdOf(expert).layer;
  return layer > layer_ && layer - layer_ <= kMostLayersAhead;
}

// Those whose turn has come or will not come: they may be evicted.
void ExpertTiers::ReleaseGuesses(bool ahead_too) {
  std::erase_if(held_, [&](uint32_t expert) {
    if (is_held_[expert] != 0) {
      if (!ahead_too && IsAhead(expert)) return false;
      is_held_[expert] = 0;
      if (cache_->state(expert) == ExpertCache::State::kResident) {
        cache_->Unpin(expert);
      }
    }
    held_bytes_ -= table_.SizeBytes(expert);
    return true;
  });
}

void ExpertTiers::StartFilling() {
  while (next_to_fill_ < table_.num_experts() && fetcher_->CanStart() &&
         fetcher_->num_in_flight() < kMostReadsToFill) {
    const uint32_t expert = next_to_fill_++;
    if (cache_->state(expert) != ExpertCache::State::kAbsent ||
        cache_->FreeSlotsFor(expert) == 0) {
      continue;
    }
    CHECK(cache_->Reserve(expert));
    Start(expert);
  }
}

// A step wants the expert: if a guess had it read, and it is still there or on
// its way, the guess was good.
void ExpertTiers::TakeGuess(uint32_t expert) {
  if (is_guess_[expert] == 0) return;
  is_guess_[expert] = 0;
  if (cache_->state(expert) != ExpertCache::State::kAbsent) {
    ++counters_.good_guesses;
    counters_.good_guess_bytes += table_.SizeBytes(expert);
  }
}

void ExpertTiers::Pump(ThreadPool& pool) {
  CHECK_EQ(num_awaited_, 0u);
  if (fetcher_->num_in_flight() > 0) {
    fetched_.clear();
    fetcher_->Wait(0, pool, &fetched_);
    for (const Fetched& fetched : fetched_) {
      const Status status = TakeIn(fetched);
      // Nobody waits between turns: who wants it next will try again.
      CHECK(status.ok());
    }
  }
  cache_->EvictIdle();
  StartReads();
}

void ExpertTiers::Preload(std::span<const uint32_t> experts, ThreadPool& pool,
                          std::atomic<uint64_t>* done_bytes) {
  End();
  size_t num_begun = 0;
  while (true) {
    while (num_begun < experts.size() && fetcher_->CanStart()) {
      const uint32_t expert = experts[num_begun];
      if (cache_->state(expert) == ExpertCache::State::kAbsent) {
        if (!cache_->Reserve(expert)) break;
        Start(expert);
      }
      ++num_begun;
    }
    if (fetcher_->num_in_flight() == 0) return;
    fetched_.clear();
    fetcher_->Wait(1, pool, &fetched_);
    for (const Fetched& fetched : fetched_) {
      CHECK(TakeIn(fetched).ok());  // nobody waits for it
      if (done_bytes != nullptr) {
        *done_bytes += SizeBytes(fetched.expert);
      }
    }
  }
}

Status ExpertTiers::LoadPinned(ThreadPool& pool) {
  Preload(pinned_, pool, nullptr);
  const uint32_t no_tokens = 0;
  for (const uint32_t expert : pinned_) {
    if (cache_->state(expert) == ExpertCache::State::kResident) continue;
    // Its read has failed: a turn tries again, and says why it does.
    const routing::ExpertId id = table_.IdOf(expert);
    Begin(id.layer, {&id.index, 1}, {&no_tokens, 1});
    RETURN_IF_ERROR(Next(pool).status());
    End();
  }
  return {};
}

Result<std::span<const uint32_t>> ExpertTiers::Next(ThreadPool& pool) {
  if (!handed_out_first_) {
    handed_out_first_ = true;
    if (!handed_out_.empty()) return std::span<const uint32_t>(handed_out_);
  }
  ReleaseHandedOut();
  StartReads();
  while (handed_out_.empty() && num_awaited_ > 0) {
    CHECK_GT(fetcher_->num_in_flight(), 0u);  // the floor leaves room for one
    fetched_.clear();
    fetcher_->Wait(1, pool, &fetched_);
    Status status;
    for (const Fetched& fetched : fetched_) {
      const Status taken = TakeIn(fetched);
      if (status.ok()) status = taken;
    }
    if (!status.ok()) {
      End();
      return status;
    }
    StartReads();
  }
  return std::span<const uint32_t>(handed_out_);
}

Status ExpertTiers::TakeIn(const Fetched& fetched) {
  if (!fetched.status.ok()) return HandleFailure(fetched);
  const uint32_t entry = fetched.expert;
  const uint32_t expert = ExpertOf(entry);
  ExpertCache& cache = CacheOf(entry);
  const uint32_t position = position_of_[entry];
  cache.Publish(expert, position == kUnwanted ? 0 : num_tokens_[position]);
  const ExpertLayout& layout = TableOf(entry).LayoutOf(expert);
  const std::byte* slot = cache.slot(expert);
  weights_[entry] = {.gate = layout.gate.ViewIn(slot),
                     .up = layout.up.ViewIn(slot),
                     .down = layout.down.ViewIn(slot)};
  if (IsCopy(entry)) {
    counters_.tail_bytes += layout.size_bytes;
  } else {
    ++counters_.fetched_experts;
  }
  const bool is_held = !IsCopy(entry) && is_held_[expert] != 0;
  if (position == kUnwanted) {
    if (!is_held) cache.Unpin(expert);
    return {};
  }
  CHECK(!is_held);  // its turn has come
  handed_out_.push_back(position);
  position_of_[entry] = kUnwanted;
  --num_awaited_;
  return {};
}

Status ExpertTiers::HandleFailure(const Fetched& fetched) {
  const uint32_t entry = fetched.expert;
  const uint32_t expert = ExpertOf(entry);
  ++counters_.failed_reads;
  if (fetched.status.code() == Code::kCorrupt) ++counters_.checksum_failures;
  const bool wanted = position_of_[entry] != kUnwanted;
  if (!IsCopy(entry)) {
    is_guess_[expert] = 0;
    is_held_[expert] = 0;  // Abandon or its turn takes the pin
  }
  if (wanted && num_tries_[entry] < kMaxTries) {
    ++num_tries_[entry];
    fetcher_->Start(entry, CacheOf(entry).slot(expert));
    return {};
  }
  CacheOf(entry).Abandon(expert);
  if (!wanted) return {};
  const routing::ExpertId id = table_.IdOf(expert);
  return Status(
      fetched.status.code(),
      fmt::format("{}expert {} of layer {} cannot be had, tried {} "
                  "times: {}",
                  IsCopy(entry) ? "the low-bit copy of " : "", id.index,
                  id.layer, kMaxTries, fetched.status.message()));
}

Status ExpertTiers::SetBudget(uint64_t budget_bytes, ThreadPool& pool) {
  End();
  ReleaseGuesses(true);
  while (fetcher_->num_in_flight() > 0) {
    fetched_.clear();
    fetcher_->Wait(fetcher_->num_in_flight(), pool, &fetched_);
    for (const Fetched& fetched : fetched_) RETURN_IF_ERROR(TakeIn(fetched));
  }
  // Copies keep their share: they are few.
  const uint64_t copy_bytes = copies_ ? copy_cache_->budget_bytes() : 0;
  RETURN_IF_ERROR(
      cache_->SetBudget(budget_bytes - std::min(budget_bytes, copy_bytes)));
  return LoadPinned(pool);
}

telemetry::TierCounters ExpertTiers::counters() const {
  telemetry::TierCounters counters = counters_;
  const FetchCounters fetch = fetcher_->counters();
  counters.fetched_bytes = fetch.read_bytes;
  counters.stall_seconds = fetch.wait_seconds;
  counters.unpack_seconds = fetch.unpack_seconds;
  counters.staged_experts = fetch.staged_experts;
  counters.remote_experts = fetch.remote_experts;
  counters.dropped_experts = fetch.dropped_experts;
  counters.remote_bytes = fetch.remote_bytes;
  counters.evictions = cache_->num_evictions();
  counters.transient_evictions = cache_->num_transient_evictions();
  counters.idle_evictions = cache_->num_idle_evictions();
  return counters;
}

}  // namespace muster::experts

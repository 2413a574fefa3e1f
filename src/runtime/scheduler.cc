#include "runtime/scheduler.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "runtime/client_shares.h"
#include "runtime/engine.h"
#include "runtime/forward.h"
#include "runtime/kv_pages.h"
#include "runtime/prefix_cache.h"
#include "runtime/scheduled_sequence.h"
#include "runtime/step_batch.h"
#include "telemetry/trace.h"

namespace muster::runtime {

void SequenceListener::OnPromptChances(size_t, const TokenChances&) {}

namespace {

using Clock = std::chrono::steady_clock;
using Sequence = ScheduledSequence;
using Sequences = std::vector<std::unique_ptr<Sequence>>;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::unique_ptr<Sequence> TakeOut(Sequences* from, Sequences::iterator at) {
  std::unique_ptr<Sequence> sequence = std::move(*at);
  from->erase(at);
  return sequence;
}

Sequences::iterator FindSequence(Sequences& in, SequenceId id) {
  return std::ranges::find_if(in, [id](const auto& s) { return s->id == id; });
}

// What a wanted row of logits became.
struct Outcome {
  Sequence* sequence = nullptr;
  size_t position = 0;           // of the row
  std::optional<int32_t> token;  // the next of the sequence, if it is that row
  std::optional<TokenChances> chances;  // of `token` or the prompt's next
};

}  // namespace

class Scheduler::Impl {
 public:
  Impl(std::shared_ptr<const LoadedModel> model,
       const SchedulerOptions& options);

  Result<SequenceId> Submit(SequenceRequest request,
                            SequenceListener* listener);
  void Cancel(SequenceId id);
  bool idle() const { return running_.empty() && waiting_.empty(); }
  void Step();
  Status SetExpertBudget(uint64_t budget_bytes);
  SchedulerStats stats() const;
  const telemetry::RoutingStats& routing() const { return routing_; }
  const LoadedModel& model() const { return *model_; }
  size_t context_length() const { return context_length_; }
  size_t num_threads() const { return pool_.num_threads(); }

 private:
  Status Check(const SequenceRequest& request) const;

  // Who goes first.
  bool Precedes(const Sequence& a, const Sequence& b) const;

  void EndLateSequences();
  void Admit();
  bool MayUseCache(const Sequence& sequence) const;
  bool AwaitsPrefix(const Sequence& sequence) const;
  size_t PositionsToStart(const Sequence& sequence) const;
  bool MakeRoomFor(const Sequence& sequence);
  void Start(std::unique_ptr<Sequence> sequence);

  // Of the running ones, the one that gives way to others; end(): none.
  Sequences::iterator FirstToGiveWay();
  void Preempt(Sequences::iterator at);

  std::vector<StepPart> ChooseReservedParts();
  Status Run(std::span<const StepPart> parts);
  void RunOneByOne(std::span<const StepPart> parts);
  void Advance(std::span<const StepPart> parts);
  void Decide(std::span<float> logits, Outcome* outcome) const;
  void Tell(const Outcome& outcome);
  void TakeToken(const Outcome& outcome);

  bool Reserve(Sequence* sequence, size_t positions);
  void RememberComputed(Sequence* sequence);
  void Finish(Sequences* in, Sequences::iterator at, FinishReason reason,
              Status status = {});
  void FinishRunning(const Sequence& sequence, FinishReason reason,
                     Status status = {});

  PoolTrace pool_trace_;
  ThreadPool pool_;
  std::shared_ptr<const LoadedModel> model_;
  const SchedulerOptions options_;
  const size_t context_length_;
  Forward forward_;
  KvPages pages_;
  PrefixCache prefixes_{&pages_};
  ClientShares clients_;
  Sequences waiting_;
  Sequences running_;
  SequenceId last_id_ = 0;
  uint64_t num_admissions_ = 0;
  telemetry::RoutingStats routing_;
  telemetry::RoutingStats step_routing_;
  SchedulerStats stats_;
  std::vector<float> logits_;  // [rows that want them, vocab_size]
};

Scheduler::Impl::Impl(std::shared_ptr<const LoadedModel> model,
                      const SchedulerOptions& options)
    : pool_(NumThreads(options.engine)),
      model_(std::move(model)),
      options_(options),
      context_length_(std::min(options.engine.context_length,
                               model_->config.context_length)),
      forward_(*model_, pool_, context_length_, options.engine.routing,
               options.engine.tiers.layers_ahead),
      pages_(model_->config, options.engine.kv_type,
             KvPages::PagesFor(
                 std::max(options.engine.kv_positions, context_length_))),
      routing_(MakeRoutingStats(model_->config)),
      step_routing_(routing_) {}

Status Scheduler::Impl::Check(const SequenceRequest& request) const {
  RETURN_IF_ERROR(Validate(request.sampling));
  if (request.prompt.empty()) return InvalidArgument("the prompt is empty");
  RETURN_IF_ERROR(CheckInVocabulary(request.prompt, model_->config.vocab_size));
  if (request.prompt.size() > context_length_) {
    return InvalidArgument(
        fmt::format("the prompt has {} tokens, more than the context of {}",
                    request.prompt.size(), context_length_));
  }
  return {};
}

Result<SequenceId> Scheduler::Impl::Submit(SequenceRequest request,
                                           SequenceListener* listener) {
  RETURN_IF_ERROR(Check(request));
  if (waiting_.size() >= options_.max_waiting) {
    return Status(Code::kResourceExhausted,
                  fmt::format("{} requests wait already, the most that may",
                              waiting_.size()));
  }
  clients_.Enter(request.client);
  waiting_.push_back(std::make_unique<Sequence>(++last_id_, std::move(request),
                                                listener, &pages_));
  return last_id_;
}

void Scheduler::Impl::Cancel(SequenceId id) {
  for (Sequences* sequences : {&waiting_, &running_}) {
    const auto at = FindSequence(*sequences, id);
    if (at == sequences->end()) continue;
    Finish(sequences, at, FinishReason::kCancelled);
    return;
  }
}

void Scheduler::Impl::Step() {
  EndLateSequences();
  Admit();
  if (running_.empty()) return;
  const std::vector<StepPart> parts = ChooseReservedParts();
  ++stats_.steps;
  const Status status = Run(parts);
  if (status.ok()) {
    Advance(parts);
  } else if (parts.size() == 1) {
    ++stats_.failed_steps;
    FinishRunning(*parts[0].sequence, FinishReason::kFailed, status);
  } else {
    ++stats_.failed_steps;
    RunOneByOne(parts);
  }
}

void Scheduler::Impl::EndLateSequences() {
  const Clock::time_point now = Clock::now();
  for (Sequences* sequences : {&waiting_, &running_}) {
    for (size_t i = sequences->size(); i > 0; --i) {
      const auto at = sequences->begin() + static_cast<std::ptrdiff_t>(i - 1);
      if ((*at)->request.deadline.value_or(Clock::time_point::max()) > now) {
        continue;
      }
      Finish(sequences, at, FinishReason::kDeadline);
    }
  }
}

bool Scheduler::Impl::Precedes(const Sequence& a, const Sequence& b) const {
  if (a.request.priority != b.request.priority) {
    return a.request.priority > b.request.priority;
  }
  const uint64_t served_a = clients_.Served(a.request.client);
  const uint64_t served_b = clients_.Served(b.request.client);
  return served_a != served_b ? served_a < served_b : a.id < b.id;
}

// In the order of precedence; who finds no room holds up those behind it, so
// that a long prompt is not passed by short ones for ever.
void Scheduler::Impl::Admit() {
  std::ranges::sort(waiting_, [this](const auto& a, const auto& b) {
    return Precedes(*a, *b);
  });
  for (size_t i = 0; i < waiting_.size();) {
    if (AwaitsPrefix(*waiting_[i])) {
      ++i;
      continue;
    }
    if (!MakeRoomFor(*waiting_[i])) return;
    Start(
        TakeOut(&waiting_, waiting_.begin() + static_cast<std::ptrdiff_t>(i)));
  }
}

bool Scheduler::Impl::MayUseCache(const Sequence& sequence) const {
  return options_.cache_prefixes && sequence.request.may_use_cached_prefix;
}

// Whether one that runs computes more of this prompt just now than is
// remembered: it will be, when that prompt ends.
bool Scheduler::Impl::AwaitsPrefix(const Sequence& sequence) const {
  if (!MayUseCache(sequence) || sequence.request.prompt_chances) return false;
  const size_t found = prefixes_.Find(sequence.tokens);
  const std::span<const int32_t> wanted =
      std::span(sequence.tokens).first(sequence.tokens.size() - 1);
  return std::ranges::any_of(running_, [&](const auto& other) {
    if (!MayUseCache(*other)) return false;
    const std::vector<int32_t>& prompt = other->request.prompt;
    if (other->num_computed >= prompt.size()) return false;
    const auto [end, unused] = std::ranges::mismatch(wanted, prompt);
    const auto common = static_cast<size_t>(end - wanted.begin());
    return common / PrefixCache::kBlock > found / PrefixCache::kBlock;
  });
}

// For all of its tokens and one more.
size_t Scheduler::Impl::PositionsToStart(const Sequence& sequence) const {
  return std::min(sequence.tokens.size() + 1, context_length_);
}

// Those of lower priority give way.
bool Scheduler::Impl::MakeRoomFor(const Sequence& sequence) {
  const auto has_pages = [&] {
    const size_t shared =
        MayUseCache(sequence) ? prefixes_.NumPagesInUse(sequence.tokens) : 0;
    return pages_.num_free() + prefixes_.num_pages_alone() + shared >=
           KvPages::PagesFor(PositionsToStart(sequence));
  };
  while (running_.size() == options_.max_running || !has_pages()) {
    const auto first = FirstToGiveWay();
    if (first == running_.end() ||
        (*first)->request.priority >= sequence.request.priority) {
      return false;
    }
    Preempt(first);
  }
  return true;
}

void Scheduler::Impl::Start(std::unique_ptr<Sequence> sequence) {
  const bool is_first = sequence->admission == 0;
  sequence->admission = ++num_admissions_;
  // Chances of the prompt come from logits, which nobody remembers.
  if (MayUseCache(*sequence) && !sequence->request.prompt_chances) {
    sequence->num_computed = prefixes_.Restore(sequence->tokens, &sequence->kv);
  }
  // What is missing after all is asked for again, step by step.
  (void)Reserve(sequence.get(), PositionsToStart(*sequence));
  if (is_first) {
    sequence->usage.queue_seconds = SecondsSince(sequence->submitted);
    sequence->usage.cached_tokens = sequence->num_computed;
    stats_.prompt_tokens += sequence->request.prompt.size();
    stats_.cached_tokens += sequence->num_computed;
  }
  running_.push_back(std::move(sequence));
}

Sequences::iterator Scheduler::Impl::FirstToGiveWay() {
  return std::ranges::min_element(running_, {}, [](const auto& sequence) {
    return std::pair(sequence->request.priority,
                     UINT64_MAX - sequence->admission);
  });
}

// What it computed may stay as a cached prefix until somebody needs the pages.
void Scheduler::Impl::Preempt(Sequences::iterator at) {
  std::unique_ptr<Sequence> sequence = TakeOut(&running_, at);
  RememberComputed(sequence.get());
  sequence->kv.Truncate(0);
  sequence->num_computed = 0;
  ++sequence->usage.preemptions;
  ++stats_.preemptions;
  waiting_.push_back(std::move(sequence));
}

// Those that run give way until the pages suffice: the last one has its own.
std::vector<StepPart> Scheduler::Impl::ChooseReservedParts() {
  while (true) {
    std::vector<Sequence*> sequences;
    for (const auto& sequence : running_) sequences.push_back(sequence.get());
    std::ranges::sort(sequences, [this](const Sequence* a, const Sequence* b) {
      return Precedes(*a, *b);
    });
    std::vector<StepPart> parts = ChooseParts(
        sequences,
        {.tokens = options_.engine.chunk_tokens,
         .prompt_tokens_beside_answers = options_.prompt_tokens_beside_answers,
         .logit_rows = options_.engine.logit_rows});
    if (std::ranges::all_of(parts, [this](const StepPart& part) {
          return Reserve(part.sequence,
                         part.sequence->num_computed + part.num_tokens);
        })) {
      return parts;
    }
    CHECK_GT(running_.size(), 1u);
    Preempt(FirstToGiveWay());
  }
}

// False: not even without the cached prefixes is there a page.
bool Scheduler::Impl::Reserve(Sequence* sequence, size_t positions) {
  while (!sequence->kv.Reserve(positions)) {
    if (!prefixes_.EvictOne()) return false;
  }
  return true;
}

Status Scheduler::Impl::Run(std::span<const StepPart> parts) {
  const std::vector<BatchRow> rows = RowsOf(parts);
  const telemetry::TraceZone zone(
      "step", {"tokens", static_cast<int64_t>(rows.size())},
      {"sequences", static_cast<int64_t>(parts.size())});
  pool_.SetObserver(telemetry::Trace::IsOn() ? &pool_trace_ : nullptr);
  const ThreadPool::CallerPin pin(pool_);
  const auto wanted =
      static_cast<size_t>(std::ranges::count_if(rows, &BatchRow::wants_logits));
  logits_.resize(wanted * model_->config.vocab_size);
  step_routing_.Reset();
  uint64_t routed_parameters = 0;
  RETURN_IF_ERROR(forward_.Run(
      rows, logits_.data(),
      {.stats = &step_routing_, .routed_parameters = &routed_parameters}));
  // Only what counted: a step that failed runs again.
  routing_.Merge(step_routing_);
  stats_.routed_parameters += routed_parameters;
  stats_.step_tokens += rows.size();
  return {};
}

// Those whose experts cannot be had end, the others do not notice.
void Scheduler::Impl::RunOneByOne(std::span<const StepPart> parts) {
  for (const StepPart& part : parts) {
    const Status status = Run({&part, 1});
    if (status.ok()) {
      Advance({&part, 1});
    } else {
      FinishRunning(*part.sequence, FinishReason::kFailed, status);
    }
  }
}

void Scheduler::Impl::Advance(std::span<const StepPart> parts) {
  const size_t vocab_size = model_->config.vocab_size;
  std::vector<Outcome> outcomes;
  for (const StepPart& part : parts) {
    Sequence& sequence = *part.sequence;
    for (size_t i = 0; i < part.num_tokens; ++i) {
      const size_t position = sequence.num_computed + i;
      if (!sequence.WantsLogits(position)) continue;
      outcomes.push_back({.sequence = &sequence, .position = position});
    }
    const size_t prompt_size = sequence.request.prompt.size();
    const bool was_in_prompt = sequence.num_computed < prompt_size;
    sequence.num_computed += part.num_tokens;
    clients_.Charge(sequence.request.client, part.num_tokens);
    if (was_in_prompt && sequence.num_computed >= prompt_size) {
      RememberComputed(&sequence);
    }
  }
  pool_.ForEach(outcomes.size(), [&](size_t i) {
    Decide(std::span(logits_).subspan(i * vocab_size, vocab_size),
           &outcomes[i]);
  });
  for (const Outcome& outcome : outcomes) Tell(outcome);
}

void Scheduler::Impl::Decide(std::span<float> logits, Outcome* outcome) const {
  Sequence& sequence = *outcome->sequence;
  const SequenceRequest& request = sequence.request;
  const size_t next = outcome->position + 1;
  if (next < sequence.tokens.size()) {
    outcome->chances =
        ChancesOf(logits, request.prompt[next], *request.prompt_chances);
    return;
  }
  if (request.max_tokens == 0) return;
  if (!request.top_chances) {
    outcome->token = sequence.sampler.Sample(logits);
    return;
  }
  std::vector<float> changed(logits.begin(), logits.end());
  outcome->token = sequence.sampler.Sample(changed);
  outcome->chances = ChancesOf(logits, *outcome->token, *request.top_chances);
}

void Scheduler::Impl::Tell(const Outcome& outcome) {
  Sequence& sequence = *outcome.sequence;
  const size_t next = outcome.position + 1;
  if (next < sequence.tokens.size()) {
    sequence.listener->OnPromptChances(next, *outcome.chances);
    sequence.num_told_prompt_chances = next;
  } else if (outcome.token) {
    TakeToken(outcome);
  } else {
    FinishRunning(sequence, FinishReason::kLength);
  }
}

void Scheduler::Impl::TakeToken(const Outcome& outcome) {
  Sequence& sequence = *outcome.sequence;
  const int32_t token = *outcome.token;
  const std::vector<int32_t>& stops = sequence.request.stop_tokens;
  if (std::ranges::find(stops, token) != stops.end()) {
    FinishRunning(sequence, FinishReason::kStop);
    return;
  }
  sequence.tokens.push_back(token);
  sequence.sampler.Accept(token);
  ++stats_.generated_tokens;
  const bool goes_on = sequence.listener->OnToken(
      token, outcome.chances ? &*outcome.chances : nullptr);
  if (!goes_on) {
    FinishRunning(sequence, FinishReason::kStop);
  } else if (sequence.num_generated() == sequence.request.max_tokens ||
             sequence.tokens.size() > context_length_) {
    FinishRunning(sequence, FinishReason::kLength);
  }
}

void Scheduler::Impl::RememberComputed(Sequence* sequence) {
  if (!MayUseCache(*sequence)) return;
  prefixes_.Remember(std::span(sequence->tokens).first(sequence->num_computed),
                     &sequence->kv);
}

void Scheduler::Impl::FinishRunning(const Sequence& sequence,
                                    FinishReason reason, Status status) {
  Finish(&running_, FindSequence(running_, sequence.id), reason,
         std::move(status));
}

void Scheduler::Impl::Finish(Sequences* in, Sequences::iterator at,
                             FinishReason reason, Status status) {
  const std::unique_ptr<Sequence> sequence = TakeOut(in, at);
  if (reason != FinishReason::kFailed) RememberComputed(sequence.get());
  clients_.Leave(sequence->request.client);
  sequence->usage.generated_tokens = sequence->num_generated();
  sequence->listener->OnFinish({.reason = reason,
                                .status = std::move(status),
                                .usage = sequence->usage});
}

Status Scheduler::Impl::SetExpertBudget(uint64_t budget_bytes) {
  if (model_->tiers == nullptr) {
    return InvalidArgument(
        "all experts of this model are in memory: start with less --ram than "
        "it needs to change that while it runs");
  }
  return model_->tiers->SetBudget(budget_bytes, pool_);
}

SchedulerStats Scheduler::Impl::stats() const {
  SchedulerStats stats = stats_;
  stats.running = running_.size();
  stats.waiting = waiting_.size();
  stats.kv_pages = pages_.num_pages();
  stats.kv_pages_in_use = pages_.num_pages() - pages_.num_free();
  stats.kv_pages_cached = prefixes_.num_pages_alone();
  return stats;
}

Result<std::unique_ptr<Scheduler>> Scheduler::Create(
    std::shared_ptr<const LoadedModel> model, const SchedulerOptions& options) {
  RETURN_IF_ERROR(KvPages::CheckType(model->config, options.engine.kv_type));
  const size_t most =
      std::min(options.engine.logit_rows, options.engine.chunk_tokens);
  if (options.max_running == 0 || options.max_running > most) {
    return InvalidArgument(fmt::format(
        "{} sequences at a time: expected 1 to {}, the tokens that a step has "
        "room for",
        options.max_running, most));
  }
  return std::unique_ptr<Scheduler>(
      new Scheduler(std::make_unique<Impl>(std::move(model), options)));
}

Scheduler::Scheduler(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Scheduler::~Scheduler() = default;

Result<SequenceId> Scheduler::Submit(SequenceRequest request,
                                     SequenceListener* listener) {
  return impl_->Submit(std::move(request), listener);
}
void Scheduler::Cancel(SequenceId id) { impl_->Cancel(id); }
bool Scheduler::idle() const { return impl_->idle(); }
void Scheduler::Step() { impl_->Step(); }
Status Scheduler::SetExpertBudget(uint64_t budget_bytes) {
  return impl_->SetExpertBudget(budget_bytes);
}
SchedulerStats Scheduler::stats() const { return impl_->stats(); }
const telemetry::RoutingStats& Scheduler::routing() const {
  return impl_->routing();
}
const LoadedModel& Scheduler::model() const { return impl_->model(); }
size_t Scheduler::context_length() const { return impl_->context_length(); }
size_t Scheduler::num_threads() const { return impl_->num_threads(); }

}  // namespace muster::runtime

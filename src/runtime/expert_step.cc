#include "runtime/expert_step.h"

#include <algorithm>

#include "base/check.h"
#include "experts/expert_tiers.h"
#include "kernels/elementwise.h"
#include "routing/router.h"
#include "routing/tail.h"
#include "telemetry/trace.h"

namespace muster::runtime {

using kernels::ActivationForms;
using kernels::ActivationView;
using model::ExpertWeights;
using model::LayerWeights;

namespace {

// Steps of fewer rows guess as far ahead as pays (PrefetchGovernor); a prompt's
// calls nearly all experts of the next layer, which pays always.
constexpr size_t kFewestRowsOfPrompt = 16;

// A token's guess starts behind so many reads: the next layer's would have to
// wait for it.
constexpr size_t kMostReadsToGuess = 4;

// And what was used within so many steps is worth more than a guess.
constexpr uint64_t kStepsSpared = 2;

// More rows than these are exact whatever the options: together they call so
// many experts that one row's stand-in rarely spares a read. A prompt's result
// is exact but for a last chunk as short as this.
constexpr size_t kMostAwareRows = 4;

}  // namespace

ExpertStep::ExpertStep(const LoadedModel& model, ThreadPool& pool,
                       const RoutingChoice& choice,
                       std::optional<uint32_t> layers_ahead)
    : model_(model),
      pool_(pool),
      choice_(choice),
      forms_(FormsOf(model)),
      next_experts_(model),
      prefetch_(layers_ahead) {}

void ExpertStep::BeginStep(size_t num_rows) {
  is_foreseen_.clear();
  layers_ahead_ = 0;
  step_rows_ = num_rows;
  if (model_.tiers == nullptr) return;
  if (num_rows >= kFewestRowsOfPrompt) {
    layers_ahead_ = 1;
  } else {
    layers_ahead_ = prefetch_.layers_ahead();
    step_start_ = std::chrono::steady_clock::now();
  }
  const experts::ExpertTiers& tiers = *model_.tiers;
  if (tiers.cache().num_resident() == tiers.table().num_experts()) {
    layers_ahead_ = 0;
  }
}

void ExpertStep::EndStep() {
  if (model_.tiers == nullptr || step_rows_ >= kFewestRowsOfPrompt) return;
  const std::chrono::duration<double> spent =
      std::chrono::steady_clock::now() - step_start_;
  prefetch_.EndStep(step_rows_, spent.count());
}

// Three parallel regions for one token whose experts are in memory: the router;
// gate and up of all experts; their down products and the sum.
Status ExpertStep::Run(size_t layer, const float* hidden, const float* normed,
                       size_t num_rows, const StepRecord& record,
                       PhaseClock& clock, float* out) {
  turn_ = {.layer = layer,
           .hidden = hidden,
           .normed = normed,
           .num_rows = num_rows,
           .out = out};
  turn_.has_shared = !Weights().shared.gate.empty();
  routed_parameters_ = 0;
  clock.Enter(Phase::kRouter);
  Route(record);
  GroupPairs();
  clock.Enter(Phase::kGateUp);
  PrepareInputs();
  PrepareInner();
  if (model_.tiers != nullptr && Config().is_moe) {
    RETURN_IF_ERROR(RunTieredExperts(clock));
  } else {
    // Once: what it returns is valid until a call with a larger count.
    const auto all = first_numbers_(std::max(groups_.tokens.size(), num_rows))
                         .first(groups_.expert_ids.size());
    GateAndUp(all, turn_.has_shared);
    clock.Enter(Phase::kDown);
    if (num_rows == 1) {
      SumOfOneRow();
    } else {
      Down(all, turn_.has_shared);
      SumOfRows();
    }
  }
  if (record.routed_parameters != nullptr) {
    *record.routed_parameters += routed_parameters_;
  }
  return {};
}

// Which experts each row takes: routing_; how much of the shared one:
// shared_scale_.
void ExpertStep::Route(const StepRecord& record) {
  const LayerWeights& weights = Weights();
  const model::LayerConfig& config = Config();
  const size_t num_rows = turn_.num_rows;
  const ActivationView x = {
      .x = turn_.normed, .num_rows = num_rows, .cols = model_.config.model_dim};
  const std::span<const uint32_t> rows = first_numbers_(num_rows);
  product_list_.clear();
  if (config.is_moe) {
    router_logits_.resize(num_rows * weights.router.rows);
    product_list_.push_back({&weights.router, &x, rows, router_logits_.data(),
                             weights.router.rows});
  }
  shared_scale_.assign(num_rows, 1.0f);
  if (config.shared_gate) {
    product_list_.push_back(
        {&weights.shared_router, &x, rows, shared_scale_.data(), 1});
  }
  next_experts_.Ask(turn_.layer, layers_ahead_, turn_.hidden, num_rows,
                    product_list_);
  products_.Run(product_list_, pool_);
  if (config.shared_gate) kernels::Sigmoid(shared_scale_.data(), num_rows);
  if (config.is_moe) {
    ChooseExperts();
    if (record.stats != nullptr) {
      record.stats->Record(static_cast<uint32_t>(turn_.layer), routing_.ids);
    }
  } else {
    routing_.num_tokens = num_rows;
    routing_.top_k = 1;
    routing_.ids.assign(num_rows, 0);
    routing_.weights.assign(num_rows, 1.0f);
  }
  if (record.routings != nullptr) {
    record.routings->resize(model_.config.layers.size());
    (*record.routings)[turn_.layer] =
        config.is_moe ? routing_ : routing::Routing{};
  }
}

void ExpertStep::ChooseExperts() {
  const routing::RouterConfig& router = Config().router;
  if (!choice_.cache_aware || model_.tiers == nullptr ||
      turn_.num_rows > kMostAwareRows) {
    routing::Route(router, router_logits_.data(), nullptr, turn_.num_rows,
                   &routing_);
    return;
  }
  experts::ExpertTiers& tiers = *model_.tiers;
  in_memory_.resize(router.num_experts);
  for (uint32_t id = 0; id < router.num_experts; ++id) {
    in_memory_[id] = tiers.IsInMemory(static_cast<uint32_t>(turn_.layer), id);
  }
  const size_t num_replaced = routing::RouteCacheAware(
      router, *choice_.cache_aware, router_logits_.data(), in_memory_,
      turn_.num_rows, &routing_);
  tiers.CountChoices(routing_.ids.size(), num_replaced);
}

void ExpertStep::GroupPairs() {
  routing::GroupByExpert(routing_, Config().router.num_experts, &groups_);
  pair_of_slot_.resize(groups_.tokens.size());
  for (uint32_t pair = 0; pair < groups_.tokens.size(); ++pair) {
    pair_of_slot_[groups_.tokens[pair] * routing_.top_k + groups_.slots[pair]] =
        pair;
  }
}

// A group may be computed from its expert's copy where none of its rows minds.
void ExpertStep::AllowCopies() {
  may_be_copies_.clear();
  if (!choice_.tail_weight || turn_.num_rows > kMostAwareRows) return;
  routing::FindTail(routing_, *choice_.tail_weight, &in_tail_);
  may_be_copies_.assign(groups_.expert_ids.size(), 1);
  for (size_t g = 0; g < may_be_copies_.size(); ++g) {
    for (size_t p = groups_.offsets[g]; p < groups_.offsets[g + 1]; ++p) {
      may_be_copies_[g] &=
          in_tail_[groups_.tokens[p] * routing_.top_k + groups_.slots[p]];
    }
  }
}

// Experts are computed as they come into memory; the shared one while the first
// are read.
Status ExpertStep::RunTieredExperts(PhaseClock& clock) {
  experts::ExpertTiers& tiers = *model_.tiers;
  const size_t num_groups = groups_.expert_ids.size();
  group_sizes_.resize(num_groups);
  for (size_t g = 0; g < num_groups; ++g) {
    group_sizes_[g] = static_cast<uint32_t>(TokensOf(g).size());
  }
  AllowCopies();
  tiers.Begin(static_cast<uint32_t>(turn_.layer), groups_.expert_ids,
              group_sizes_, may_be_copies_);
  CountForeseen();
  GuessNextLayers();
  if (turn_.num_rows == 1 && tiers.AllInMemory()) {
    ASSIGN_OR_RETURN(const auto all, tiers.Next(pool_));
    CHECK_EQ(all.size(), num_groups);
    GateAndUp(all, turn_.has_shared);
    clock.Enter(Phase::kDown);
    SumOfOneRow();
    tiers.End();
    return {};
  }
  bool with_shared = turn_.has_shared;
  if (with_shared && !tiers.AnyInMemory()) {
    GateAndUp({}, true);
    Down({}, true);
    with_shared = false;
  }
  for (size_t done = 0; done < num_groups;) {
    clock.Enter(Phase::kWait);
    ASSIGN_OR_RETURN(const auto groups, tiers.Next(pool_));
    clock.Enter(Phase::kGateUp);
    GateAndUp(groups, with_shared);
    clock.Enter(Phase::kDown);
    Down(groups, with_shared);
    with_shared = false;
    done += groups.size();
  }
  tiers.End();
  SumOfRows();
  return {};
}

// Reads of what the next layers will call begin while this one computes.
void ExpertStep::GuessNextLayers() {
  if (layers_ahead_ == 0) return;
  const std::span<const routing::ExpertId> guesses = next_experts_.Answer();
  is_foreseen_.clear();
  for (const routing::ExpertId id : guesses) {
    if (id.layer != guesses.front().layer) break;  // the nearest layer's alone
    is_foreseen_.resize(model_.config.layers[id.layer].router.num_experts);
    is_foreseen_[id.index] = 1;
  }
  experts::GuessLimits limits;
  if (turn_.num_rows < kFewestRowsOfPrompt) {
    limits = {.most_in_flight = kMostReadsToGuess,
              .spare_turns = kStepsSpared * model_.config.layers.size()};
  }
  model_.tiers->Guess(guesses, limits);
}

// How good the guess was that the layer before has made for this one.
void ExpertStep::CountForeseen() {
  if (is_foreseen_.empty()) return;
  uint64_t num_foreseen = 0;
  for (const uint32_t id : groups_.expert_ids) num_foreseen += is_foreseen_[id];
  model_.tiers->CountForeseen(groups_.expert_ids.size(), num_foreseen);
  is_foreseen_.clear();
}

void ExpertStep::Pump() {
  if (model_.tiers != nullptr) model_.tiers->Pump(pool_);
}

const ExpertWeights& ExpertStep::Expert(size_t g) const {
  const uint32_t id = groups_.expert_ids[g];
  if (model_.tiers != nullptr && Config().is_moe) {
    return model_.tiers->Weights(static_cast<uint32_t>(turn_.layer), id);
  }
  return Weights().experts[id];
}

std::span<const uint32_t> ExpertStep::TokensOf(size_t g) const {
  return std::span<const uint32_t>(groups_.tokens)
      .subspan(groups_.offsets[g], groups_.offsets[g + 1] - groups_.offsets[g]);
}

// Each layer's products read their inputs in the forms that its weights need.
std::vector<ExpertStep::Forms> ExpertStep::FormsOf(const LoadedModel& model) {
  std::vector<Forms> forms(model.config.layers.size());
  const auto add = [](DType gate, DType up, DType down, Forms& f) {
    f.in |= kernels::FormRead(gate);
    f.in |= kernels::FormRead(up);
    f.inner |= kernels::FormRead(down);
  };
  for (size_t l = 0; l < forms.size(); ++l) {
    const LayerWeights& weights = model.weights.layers[l];
    for (const ExpertWeights& expert : weights.experts) {
      add(expert.gate.type, expert.up.type, expert.down.type, forms[l]);
    }
    if (model.tiers == nullptr || !model.config.layers[l].is_moe) continue;
    for (const experts::ExpertTable* table :
         {&model.tiers->table(), model.tiers->copies()}) {
      if (table == nullptr) continue;
      const ExpertLayout& layout =
          table->layer(static_cast<uint32_t>(l)).layout;
      add(layout.gate.shape.type, layout.up.shape.type, layout.down.shape.type,
          forms[l]);
    }
  }
  return forms;
}

void ExpertStep::PrepareInputs() {
  ActivationForms forms = forms_[turn_.layer].in;
  if (turn_.has_shared) {
    forms |= kernels::FormRead(Weights().shared.gate.type);
    forms |= kernels::FormRead(Weights().shared.up.type);
  }
  turn_.x = activations_.Set(turn_.normed, turn_.num_rows,
                             model_.config.model_dim, forms, pool_);
}

void ExpertStep::PrepareInner() {
  const model::LayerConfig& config = Config();
  expert_inner_ =
      MakeInner(groups_.tokens.size(), config.expert_ff_dim,
                forms_[turn_.layer].inner, inner_activations_, inner_floats_);
  if (!turn_.has_shared) return;
  shared_inner_ = MakeInner(turn_.num_rows, config.shared_ff_dim,
                            kernels::FormRead(Weights().shared.down.type),
                            shared_activations_, shared_floats_);
}

ExpertStep::Inner ExpertStep::MakeInner(size_t num_rows, size_t cols,
                                        const ActivationForms& forms,
                                        kernels::Activations& activations,
                                        std::vector<float>& buffer) {
  Inner inner;
  inner.view = activations.Reserve(num_rows, cols, forms);
  if (forms.groups) inner.groups = activations.groups();
  if (forms.bfloats) inner.bfloats = activations.bfloats();
  if (forms.floats) {
    buffer.resize(num_rows * cols);
    inner.view.x = inner.x = buffer.data();
  }
  return inner;
}

kernels::GatedProduct ExpertStep::Gated(const ExpertWeights& expert,
                                        std::span<const uint32_t> tokens,
                                        const Inner& inner,
                                        size_t first_row) const {
  const ActivationForms form = kernels::FormRead(expert.down.type);
  return {.gate = &expert.gate,
          .up = &expert.up,
          .x = &turn_.x,
          .tokens = tokens,
          .inner = {.x = form.floats ? inner.x : nullptr,
                    .groups = form.groups ? inner.groups : nullptr,
                    .bfloats = form.bfloats ? inner.bfloats : nullptr,
                    .cols = inner.view.cols,
                    .num_groups = inner.view.num_groups,
                    .bfloat_stride = inner.view.bfloat_stride},
          .first_row = first_row};
}

// Expert-major: each expert is walked once for all its tokens. Leaves
// silu(gate) * up in expert_inner_ (a row a pair) and shared_inner_.
void ExpertStep::GateAndUp(std::span<const uint32_t> groups, bool with_shared) {
  gated_list_.clear();
  for (const uint32_t g : groups) {
    const ExpertWeights& expert = Expert(g);
    const std::span<const uint32_t> tokens = TokensOf(g);
    gated_list_.push_back(
        Gated(expert, tokens, expert_inner_, groups_.offsets[g]));
    if (Config().is_moe) CountParameters(expert, tokens.size());
  }
  if (with_shared) {
    gated_list_.push_back(Gated(
        Weights().shared, first_numbers_(turn_.num_rows), shared_inner_, 0));
  }
  products_.RunGated(gated_list_, pool_);
}

void ExpertStep::CountParameters(const ExpertWeights& expert,
                                 size_t num_tokens) {
  for (const WeightView* w : {&expert.gate, &expert.up, &expert.down}) {
    routed_parameters_ += uint64_t{w->rows} * w->cols * num_tokens;
  }
}

// Down products of a row whose experts are all at hand, with the weighted sum:
// out = sum over slots of weight * expert + scale * shared.
void ExpertStep::SumOfOneRow() {
  term_list_.clear();
  for (size_t slot = 0; slot < routing_.top_k; ++slot) {
    const uint32_t pair = pair_of_slot_[slot];  // one row: a pair is a group
    term_list_.push_back({.weights = &Expert(pair).down,
                          .x = &expert_inner_.view,
                          .row = pair,
                          .weight = routing_.weights[slot]});
  }
  if (turn_.has_shared) {
    term_list_.push_back({.weights = &Weights().shared.down,
                          .x = &shared_inner_.view,
                          .weight = shared_scale_[0]});
  }
  products_.RunWeightedSum(term_list_, turn_.out, pool_);
}

// Down products alone: into expert_out_ (a row a pair) and shared_out_.
void ExpertStep::Down(std::span<const uint32_t> groups, bool with_shared) {
  const size_t model_dim = model_.config.model_dim;
  const size_t num_pairs = groups_.tokens.size();
  expert_out_.resize(num_pairs * model_dim);
  const std::span<const uint32_t> pairs =
      first_numbers_(std::max(num_pairs, turn_.num_rows));
  product_list_.clear();
  for (const uint32_t g : groups) {
    const size_t begin = groups_.offsets[g];
    product_list_.push_back({&Expert(g).down, &expert_inner_.view,
                             pairs.subspan(begin, TokensOf(g).size()),
                             expert_out_.data() + begin * model_dim,
                             model_dim});
  }
  if (with_shared) {
    shared_out_.resize(turn_.num_rows * model_dim);
    product_list_.push_back({&Weights().shared.down, &shared_inner_.view,
                             pairs.first(turn_.num_rows), shared_out_.data(),
                             model_dim});
  }
  products_.Run(product_list_, pool_);
}

// The same sums as SumOfOneRow's, in the same order for each row.
void ExpertStep::SumOfRows() {
  const size_t model_dim = model_.config.model_dim;
  pool_.ForEach(turn_.num_rows, [&](size_t row) {
    float* sum = turn_.out + row * model_dim;
    std::fill_n(sum, model_dim, 0.0f);
    const size_t top_k = routing_.top_k;
    for (size_t slot = row * top_k; slot < (row + 1) * top_k; ++slot) {
      kernels::AddScaled(expert_out_.data() + pair_of_slot_[slot] * model_dim,
                         routing_.weights[slot], model_dim, sum);
    }
    if (turn_.has_shared) {
      kernels::AddScaled(shared_out_.data() + row * model_dim,
                         shared_scale_[row], model_dim, sum);
    }
  });
}

}  // namespace muster::runtime

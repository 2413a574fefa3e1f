// Decides whether a model's experts fit in memory, and opens their tiers when
// they do not.
#pragma once

#include "base/status.h"
#include "experts/expert_table.h"
#include "formats/model_files.h"
#include "model/weight_index.h"
#include "runtime/engine_options.h"
#include "runtime/loaded_model.h"

namespace muster::runtime {

struct WeightBytes {
  uint64_t pinned_bytes = 0;  // that every token multiplies
  uint64_t all_bytes = 0;
};

// Sets loaded.plan, and loaded.tiers where the plan is tiered. Fails with
// kResourceExhausted when not even the floor fits, and with kUnsupported when
// the experts of a layer differ in form, so that no slot fits them all, and
// with kInvalidArgument on a list of experts that the model does not have or
// where low-bit copies were asked for and there are none.
// REQUIRES: loaded.config is set.
Status PlanTiers(const formats::ModelFiles& files,
                 const model::WeightIndex& index, const EngineOptions& options,
                 const WeightBytes& bytes, LoadedModel& loaded);

// Fails with kUnsupported as above.
Result<experts::ExpertTable> MakeExpertTable(const model::ModelConfig& config,
                                             const model::WeightIndex& index);

}  // namespace muster::runtime

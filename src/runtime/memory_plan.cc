#include "runtime/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace muster::runtime {
namespace {

// The program, its libraries and threads, and a tokenizer: 60 to 110 MiB were
// seen with vocabularies of 32,000 to 152,000 tokens.
constexpr uint64_t kProcessBytes = uint64_t{112} << 20;
// Of the budget, for what the allocator and huge pages round up.
constexpr uint64_t kRoundingShare = 50;

std::string LimitText(const MemoryInfo& memory) {
  std::string text =
      fmt::format("{} of the machine", FormatBytes(memory.total_bytes));
  if (memory.cgroup_limit_bytes) {
    text += ", limited by its control group to " +
            FormatBytes(*memory.cgroup_limit_bytes);
  }
  return text;
}

}  // namespace

Result<MemoryPlan> PlanMemory(const MemoryDemand& demand, uint64_t ram_bytes,
                              const MemoryInfo& memory) {
  const uint64_t usable = memory.usable_bytes();  // 0: unknown
  if (ram_bytes > usable && usable != 0) {
    return Status(
        Code::kResourceExhausted,
        fmt::format("--ram {} is more than this process may use: {} ({})",
                    FormatBytes(ram_bytes), FormatBytes(usable),
                    LimitText(memory)));
  }
  MemoryPlan plan{.demand = demand};
  plan.budget_bytes = ram_bytes != 0 ? ram_bytes : usable;
  plan.margin_bytes = kProcessBytes + plan.budget_bytes / kRoundingShare;
  const uint64_t beside =
      demand.kv_bytes + demand.working_bytes + plan.margin_bytes;
  if (plan.budget_bytes == 0 ||
      beside + demand.all_bytes <= plan.budget_bytes) {
    plan.cache_bytes = demand.experts_bytes;
    return plan;
  }
  const uint64_t tiered = beside + demand.pinned_bytes + demand.staging_bytes;
  if (tiered + demand.floor_bytes > plan.budget_bytes) {
    return Status(
        Code::kResourceExhausted,
        fmt::format(
            "the model needs at least {} of memory: {} of weights that every "
            "token reads, {} of key-value cache, {} for a step, {} for experts "
            "on their way, {} for the fewest experts of a step, {} for the "
            "program. The budget is {} ({}). Raise --ram, or take a shorter "
            "context (--ctx), --kv q8 or smaller steps (--chunk)",
            FormatBytes(tiered + demand.floor_bytes),
            FormatBytes(demand.pinned_bytes), FormatBytes(demand.kv_bytes),
            FormatBytes(demand.working_bytes),
            FormatBytes(demand.staging_bytes), FormatBytes(demand.floor_bytes),
            FormatBytes(plan.margin_bytes), FormatBytes(plan.budget_bytes),
            ram_bytes != 0 ? "given with --ram" : LimitText(memory)));
  }
  plan.tiered = true;
  plan.cache_bytes = plan.budget_bytes - tiered;
  return plan;
}

uint64_t MemoryPlan::spare_bytes() const {
  const uint64_t taken =
      demand.kv_bytes + demand.working_bytes + margin_bytes + demand.all_bytes;
  return budget_bytes - std::min(budget_bytes, taken);
}

uint64_t WorkingBytes(const model::ModelConfig& config, size_t chunk_tokens,
                      size_t logit_rows) {
  uint64_t widest_row = 0;  // floats of a row in one layer's feed-forward part
  for (const model::LayerConfig& layer : config.layers) {
    const uint64_t pairs = layer.is_moe ? layer.router.top_k : 1;
    // Outputs, inner vectors as floats or as groups (64 bytes for 32).
    widest_row = std::max<uint64_t>(
        widest_row, pairs * (config.model_dim + layer.expert_ff_dim) +
                        layer.shared_ff_dim + layer.router.num_experts);
  }
  const uint64_t row = 5 * config.model_dim + 3 * config.q_dim() +
                       2 * config.kv_dim() + widest_row;
  return chunk_tokens * row * sizeof(float) +
         logit_rows * config.vocab_size * sizeof(float);
}

std::string Describe(const MemoryPlan& plan) {
  const MemoryDemand& demand = plan.demand;
  return fmt::format(
      "{} of memory: dense weights {}, key-value cache {}, steps {}, program "
      "and margin {}, experts {} of {} ({:.0f} %)",
      FormatBytes(plan.budget_bytes), FormatBytes(demand.pinned_bytes),
      FormatBytes(demand.kv_bytes),
      FormatBytes(demand.working_bytes + demand.staging_bytes),
      FormatBytes(plan.margin_bytes), FormatBytes(plan.cache_bytes),
      FormatBytes(demand.experts_bytes),
      100.0 *
          static_cast<double>(
              std::min(plan.cache_bytes, demand.experts_bytes)) /
          static_cast<double>(std::max<uint64_t>(1, demand.experts_bytes)));
}

}  // namespace muster::runtime

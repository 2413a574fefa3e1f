#include "runtime/pool_trace.h"

#include "telemetry/trace.h"

namespace muster::runtime {

using telemetry::RecordZone;
using telemetry::TraceZone;

uint64_t PoolTrace::Now() const { return telemetry::TraceTicks(); }

void PoolTrace::RegionBegins() {
  const char* name = TraceZone::CurrentName();
  name_.store(name == nullptr ? "region" : name, std::memory_order_relaxed);
  region_.fetch_add(1, std::memory_order_relaxed);
}

void PoolTrace::Worked(uint64_t begin, uint64_t end, size_t num_tasks) {
  RecordZone(name_.load(std::memory_order_relaxed), "work", begin, end,
             {"region", region_.load(std::memory_order_relaxed)},
             {"tasks", static_cast<int64_t>(num_tasks)});
}

void PoolTrace::Waited(uint64_t begin, uint64_t end) {
  RecordZone(name_.load(std::memory_order_relaxed), "wait", begin, end,
             {"region", region_.load(std::memory_order_relaxed)});
}

}  // namespace muster::runtime

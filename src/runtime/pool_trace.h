// The thread pool's regions on the timeline (telemetry/trace.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "base/thread_pool.h"

namespace muster::runtime {

// Records for each thread when it worked in a region, named as the zone in
// which the caller began the region, and when the caller waited for the others.
// Which region it was stands beside it, so that they can be put together. Use
// it while a Trace lives, for one pool.
class PoolTrace : public PoolObserver {
 public:
  uint64_t Now() const override;
  void RegionBegins() override;
  void Worked(uint64_t begin, uint64_t end, size_t num_tasks) override;
  void Waited(uint64_t begin, uint64_t end) override;

 private:
  // Written before a region, and read in it: the pool orders that.
  std::atomic<const char*> name_{nullptr};
  std::atomic<int64_t> region_{0};
};

}  // namespace muster::runtime

// The compute pool: a fixed set of threads that run one parallel region at a
// time. It is made for thousands of regions a second of some microseconds each,
// on cores that may not be ours alone:
//
// - The calling thread works too, and a region ends when its tasks have ended.
//   A worker that is late, asleep or has lost its core finds nothing to do, and
//   nobody waits for it; one that loses its core in a task delays that task.
// - Between regions threads spin while that has paid off lately, then sleep
//   (spin_budget.h). An idle pool uses no core.
// - With no more threads than processors each has a core of its own, as long as
//   others do not want that core (core_pin.h); with more, a region wakes only
//   as many as there are processors.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/core_pin.h"
#include "base/cpus.h"
#include "base/mutex.h"
#include "base/spin_budget.h"

namespace muster {

// Is told what threads do in regions, for a timeline: the folder that draws it
// is above this one, which is why this is a callback. Must not call the pool.
class PoolObserver {
 public:
  virtual ~PoolObserver() = default;
  // A clock of its choice. Any thread.
  virtual uint64_t Now() const = 0;
  // A region begins. On the calling thread, before any other call for it.
  virtual void RegionBegins() = 0;
  // The thread that calls this has run `num_tasks` >= 1 tasks of the region,
  // which has not ended.
  virtual void Worked(uint64_t begin, uint64_t end, size_t num_tasks) = 0;
  // The calling thread had nothing left to do until the region ended, now.
  virtual void Waited(uint64_t begin, uint64_t end) = 0;
};

class ThreadPool {
 public:
  // `num_threads` counts the calling thread: 1 starts none. The workers share
  // out the processors that the constructing thread may use; no other thread's
  // affinity changes (but see CallerPin).
  // REQUIRES: num_threads >= 1.
  explicit ThreadPool(size_t num_threads);
  // Waits for the threads to end.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t num_threads() const { return num_workers_ + 1; }

  // Calls fn(task) once for each task in [0, num_tasks), spread over the
  // threads; returns when all have ended. Tasks are handed out one by one, in
  // order, so uneven tasks balance. `fn` must not call the pool and must not
  // throw. One caller at a time: others wait for their turn.
  // REQUIRES: num_tasks < 2^31.
  template <class Fn>
  void ForEach(size_t num_tasks, const Fn& fn) {
    if (num_tasks == 0) return;
    if (num_workers_ == 0 || num_tasks == 1) {
      for (size_t task = 0; task < num_tasks; ++task) fn(task);
      return;
    }
    RunRegion(
        num_tasks,
        [](const void* context, size_t task) {
          (*static_cast<const Fn*>(context))(task);
        },
        &fn);
  }

  // Splits [0, n) into contiguous ranges of a multiple of `grain` (the last may
  // be shorter) and calls fn(begin, end) for each.
  // REQUIRES: grain >= 1.
  template <class Fn>
  void ForRange(size_t n, size_t grain, const Fn& fn) {
    if (n == 0) return;
    // Four ranges a thread: small enough to balance, large enough to stream.
    const size_t grains = (n + grain - 1) / grain;
    const size_t ranges = std::min(grains, num_threads() * 4);
    const size_t step = (grains + ranges - 1) / ranges * grain;
    const size_t num_tasks = (n + step - 1) / step;
    ForEach(num_tasks, [&](size_t task) {
      fn(task * step, std::min(n, (task + 1) * step));
    });
  }

  // Null: none, and that costs a load for each thread and region. It must
  // outlive its use here. REQUIRES: no region runs. What runs without a region,
  // because there is one thread or one task, is not observed.
  void SetObserver(PoolObserver* observer) {
    observer_.store(observer, std::memory_order_relaxed);
  }

  // While it lives, the thread that made it is pinned to the core that the pool
  // leaves to its caller; then it gets the affinity back that it had. For a
  // series of regions, such as a step of a model: it costs some microseconds.
  // Does nothing where the pool does not pin, or where the thread may not run
  // on that core. Lives and dies on one thread; the pool must outlive it.
  class CallerPin {
   public:
    explicit CallerPin(ThreadPool& pool);

   private:
    std::optional<CorePin> pin_;
  };

 private:
  using TaskFn = void (*)(const void* context, size_t task);
  struct Region {
    TaskFn fn = nullptr;
    const void* context = nullptr;
    uint32_t num_tasks = 0;
  };

  void RunRegion(size_t num_tasks, TaskFn fn, const void* context);
  void Publish(const Region& region) REQUIRES(caller_mutex_);
  void WakeSleepers(size_t wanted);
  void RunTasks();
  void WaitForLastTask() REQUIRES(caller_mutex_);
  void WorkerLoop(size_t worker);
  bool HasWork() const;
  void SleepUntilWork();

  const size_t num_workers_;
  CpuList cpus_;  // the constructing thread's
  CpuList pins_;  // a processor a thread, the caller's first; empty: no pinning
  size_t max_awake_;  // workers that a region wakes: a core for each
  CoreWatch caller_core_;
  Mutex caller_mutex_;  // held by the one caller whose region runs
  SpinBudget caller_budget_ GUARDED_BY(caller_mutex_);

  // The region and what is left of it, on a cache line of its own. The upper
  // half of claim_ is the region's number and the lower how many of its tasks
  // nobody has taken. A thread reads the region, then takes a task by lowering
  // claim_; if that succeeds, the region had not ended in between (its last
  // tasks were not taken), so it was the region that was read.
  alignas(64) std::atomic<uint64_t> claim_{0};
  std::atomic<TaskFn> fn_{nullptr};
  std::atomic<const void*> context_{nullptr};
  std::atomic<uint32_t> num_tasks_{0};
  std::atomic<uint32_t> num_asleep_{0};  // workers, or about to be
  std::atomic<uint32_t> num_wakes_{0};   // workers sleep while it stays
  std::atomic<bool> stop_{false};
  std::atomic<PoolObserver*> observer_{nullptr};

  // Tasks of the region that have not ended, and whether the caller sleeps
  // until there is none (the top bit).
  alignas(64) std::atomic<uint32_t> unfinished_{0};

  std::vector<std::thread> workers_;
};

// The number of threads to use when nobody says: the physical cores that this
// process may run on (affinity mask, control group), as far as the control
// group grants their time; at least 1. A thread more than the quota pays for
// would stop all of them for the rest of each period.
size_t DefaultNumThreads();

}  // namespace muster

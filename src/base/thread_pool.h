// The compute pool: a fixed set of threads that run one parallel region at a
// time. Between regions they spin briefly, because the next region of a token
// is microseconds away, and then sleep, so that an idle engine uses no core.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"

namespace muster {

class ThreadPool {
 public:
  // `num_threads` counts the calling thread: 1 starts none.
  // REQUIRES: num_threads >= 1.
  explicit ThreadPool(size_t num_threads);
  // Waits for the threads to end.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t num_threads() const { return workers_.size() + 1; }

  // Calls fn(task) once for each task in [0, num_tasks), spread over the
  // threads; returns when all have ended. Tasks are handed out one by one, in
  // order, so uneven tasks balance. `fn` must not call the pool and must not
  // throw. One caller at a time: others wait for their turn.
  template <class Fn>
  void ForEach(size_t num_tasks, const Fn& fn) {
    if (num_tasks == 0) return;
    if (workers_.empty() || num_tasks == 1) {
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

 private:
  using TaskFn = void (*)(const void* context, size_t task);
  struct Region {
    TaskFn fn = nullptr;
    const void* context = nullptr;
    size_t num_tasks = 0;
  };

  void RunRegion(size_t num_tasks, TaskFn fn, const void* context);
  void WorkerLoop();
  void RunTasks();

  Mutex caller_mutex_;  // held by the one caller whose region runs
  Region region_;       // written by the caller while no worker is in a region
  std::atomic<size_t> next_task_{0};
  std::atomic<size_t> num_busy_{0};  // workers that have yet to end the region
  std::atomic<uint32_t> epoch_{0};   // grows by one a region
  std::atomic<bool> stop_{false};
  std::vector<std::thread> workers_;
};

// The number of threads to use when nobody says: the cores that this process
// may run on (its affinity mask), at least 1.
size_t DefaultNumThreads();

}  // namespace muster

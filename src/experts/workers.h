// Threads for work that waits for disks: more of them than cores may be right,
// and none is pinned. For computing there is ThreadPool.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"

namespace muster::experts {

// Calls fn(worker, item) once for each item in [0, num_items), in order of
// starting, on `num_workers` threads; `worker` is below num_workers. Blocks
// until all have ended. After a failure no new item starts; returns the first.
template <class Fn>
Status RunWorkers(size_t num_workers, size_t num_items, const Fn& fn) {
  std::atomic<size_t> next{0};
  Mutex mutex;
  Status first_error;
  const auto work = [&](size_t worker) {
    while (true) {
      const size_t item = next++;
      if (item >= num_items) return;
      Status status = fn(worker, item);
      if (status.ok()) continue;
      next = num_items;
      MutexLock lock(mutex);
      if (first_error.ok()) first_error = std::move(status);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t w = 0; w < std::min(num_workers, num_items); ++w) {
      threads.emplace_back(work, w);
    }
  }
  return first_error;
}

}  // namespace muster::experts

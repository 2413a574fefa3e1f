#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace muster {
namespace {

// About 50 microseconds on current machines: longer than the gap between two
// regions of one layer, far shorter than anything a person could notice.
constexpr int kSpins = 2000;

void Relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// Returns once `value` differs from `old`: spins, then sleeps.
template <class T>
void WaitWhileEqual(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    Relax();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadPool::ThreadPool(size_t num_threads) {
  CHECK_GE(num_threads, 1u);
  workers_.reserve(num_threads - 1);
  for (size_t i = 1; i < num_threads; ++i) {
    workers_.emplace_back([this] { WorkerLoop(); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::RunRegion(size_t num_tasks, TaskFn fn, const void* context) {
  MutexLock lock(caller_mutex_);
  region_ = {.fn = fn, .context = context, .num_tasks = num_tasks};
  next_task_.store(0, std::memory_order_relaxed);
  num_busy_.store(workers_.size(), std::memory_order_relaxed);
  epoch_.fetch_add(1, std::memory_order_release);
  epoch_.notify_all();
  RunTasks();
  for (size_t busy = num_busy_.load(std::memory_order_acquire); busy != 0;
       busy = num_busy_.load(std::memory_order_acquire)) {
    WaitWhileEqual(num_busy_, busy);
  }
}

void ThreadPool::WorkerLoop() {
  uint32_t seen = 0;
  while (true) {
    WaitWhileEqual(epoch_, seen);
    // One region at a time, and the caller waits for every worker: a worker
    // never misses an epoch.
    ++seen;
    if (stop_.load(std::memory_order_relaxed)) return;
    RunTasks();
    if (num_busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      num_busy_.notify_one();
    }
  }
}

void ThreadPool::RunTasks() {
  const Region region = region_;
  while (true) {
    const size_t task = next_task_.fetch_add(1, std::memory_order_relaxed);
    if (task >= region.num_tasks) return;
    region.fn(region.context, task);
  }
}

size_t DefaultNumThreads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max<size_t>(1, static_cast<size_t>(CPU_COUNT(&set)));
}

}  // namespace muster

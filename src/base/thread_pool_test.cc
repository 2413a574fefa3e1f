#include "base/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace muster {
namespace {

using testing::ElementsAre;

// Calls fn(task) in a region in which each thread of the pool takes part.
template <class Fn>
void OnEachThread(ThreadPool& pool, const Fn& fn) {
  std::atomic<size_t> num_here{0};
  pool.ForEach(pool.num_threads(), [&](size_t task) {
    ++num_here;
    while (num_here != pool.num_threads()) std::this_thread::yield();
    fn(task);
  });
}

TEST(ThreadPoolTest, EachTaskRunsOnceForAnyThreadCount) {
  for (const size_t num_threads : {1, 2, 3, 8}) {
    ThreadPool pool(num_threads);
    for (const size_t num_tasks : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> runs(num_tasks);
      pool.ForEach(num_tasks, [&](size_t task) { ++runs[task]; });
      for (const auto& count : runs) ASSERT_EQ(count.load(), 1);
    }
  }
}

TEST(ThreadPoolTest, RangesCoverEachIndexOnceAndStartOnTheGrain) {
  ThreadPool pool(3);
  for (const size_t n : {1, 5, 16, 17, 1023}) {
    std::vector<std::atomic<int>> runs(n);
    pool.ForRange(n, 16, [&](size_t begin, size_t end) {
      EXPECT_EQ(begin % 16, 0u);
      for (size_t i = begin; i < end; ++i) ++runs[i];
    });
    for (const auto& count : runs) ASSERT_EQ(count.load(), 1) << n;
  }
}

TEST(ThreadPoolTest, ManyShortRegionsInARow) {
  ThreadPool pool(4);
  std::atomic<size_t> total{0};
  for (int i = 0; i < 5000; ++i) {
    pool.ForEach(4, [&](size_t task) { total += task; });
  }
  EXPECT_EQ(total.load(), 5000u * 6);
}

TEST(ThreadPoolTest, CallersOnSeveralThreadsTakeTurns) {
  ThreadPool pool(2);
  std::atomic<size_t> total{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) pool.ForEach(8, [&](size_t) { ++total; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 3u * 200 * 8);
}

TEST(ThreadPoolTest, ALateWorkerNeverTakesATaskOfARegionThatHasEnded) {
  ThreadPool pool(3);
  for (size_t region = 0; region < 20000; ++region) {
    const size_t num_tasks = 2 + region % 5;
    std::vector<size_t> region_of_task(num_tasks, 0);
    pool.ForEach(num_tasks, [&](size_t task) {
      ASSERT_LT(task, num_tasks);
      region_of_task[task] += region + 1;
    });
    for (const size_t of_task : region_of_task) ASSERT_EQ(of_task, region + 1);
  }
}

// A signal handler that keeps its thread from running anything else: the system
// could not have taken its core away more surely.
std::atomic<bool> thread_is_held{false};
std::atomic<bool> release_thread{false};

void HoldThread(int /*signal*/) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  thread_is_held = true;
  // So that a pool that waits for the thread fails the test and does not hang.
  while (!release_thread && Clock::now() - start < std::chrono::seconds(5)) {
  }
  thread_is_held = false;
}

TEST(ThreadPoolTest, ARegionDoesNotWaitForAWorkerThatHasNoCore) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer holds signals back";
#endif
  signal(SIGUSR1, HoldThread);
  ThreadPool pool(2);
  const pthread_t caller = pthread_self();
  std::atomic<pthread_t> worker{};
  while (worker == pthread_t{}) {
    pool.ForEach(2, [&](size_t) {
      if (pthread_self() != caller) worker = pthread_self();
    });
  }
  ASSERT_EQ(pthread_kill(worker, SIGUSR1), 0);
  while (!thread_is_held) {
  }
  std::atomic<size_t> num_run{0};
  for (int i = 0; i < 100; ++i) pool.ForEach(8, [&](size_t) { ++num_run; });
  EXPECT_EQ(num_run, 800u);
  EXPECT_TRUE(thread_is_held) << "a region waited for the worker";
  release_thread = true;
}

TEST(ThreadPoolTest, AnIdlePoolUsesNoProcessorTime) {
  const auto processor_time = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return std::chrono::seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           std::chrono::microseconds(usage.ru_utime.tv_usec +
                                     usage.ru_stime.tv_usec);
  };
  ThreadPool pool(4);
  for (int i = 0; i < 100; ++i) pool.ForEach(4, [](size_t) {});
  const auto before = processor_time();
  // Idle time is what is measured here, and it has to pass.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  // Each worker may spin once more; a hundred times that is far below what one
  // that does not sleep would take.
  EXPECT_LT(processor_time() - before, 100 * 3 * SpinBudget::kLongest);
}

TEST(ThreadPoolTest, WorkersArePinnedToProcessorsOfTheirOwn) {
  const size_t num_threads = AllowedCpus().size();
  if (num_threads < 2) GTEST_SKIP() << "one processor: nothing is pinned";
  // A busy machine may take a core away before the region has begun; then the
  // worker has let go (core_pin.h).
  std::set<CpuList> places;
  for (int attempt = 0; attempt < 20; ++attempt) {
    ThreadPool pool(num_threads);
    const ThreadPool::CallerPin pin(pool);
    std::vector<CpuList> of_task(num_threads);
    OnEachThread(pool, [&](size_t task) { of_task[task] = AllowedCpus(); });
    places = std::set<CpuList>(of_task.begin(), of_task.end());
    if (places.size() == num_threads) break;
  }
  ASSERT_EQ(places.size(), num_threads);
  for (const CpuList& place : places) EXPECT_EQ(place.size(), 1u);
}

TEST(ThreadPoolTest, MoreThreadsThanProcessorsAreNotPinned) {
  const CpuList before = AllowedCpus();
  ThreadPool pool(before.size() + 1);
  const ThreadPool::CallerPin pin(pool);
  pool.ForEach(100, [&](size_t) { EXPECT_EQ(AllowedCpus(), before); });
}

TEST(ThreadPoolTest, TheCallersAffinityIsItsOwn) {
  const CpuList before = AllowedCpus();
  ThreadPool pool(2);
  pool.ForEach(100, [](size_t) {});
  EXPECT_EQ(AllowedCpus(), before);
  { const ThreadPool::CallerPin pin(pool); }
  EXPECT_EQ(AllowedCpus(), before);
}

TEST(ThreadPoolTest, ACallerIsNotPinnedWhereItMayNotRun) {
  const CpuList cpus =
      CpuTopology::OfThisMachine().InPinningOrder(AllowedCpus());
  if (cpus.size() < 2) GTEST_SKIP() << "one processor: nothing is pinned";
  ThreadPool pool(2);
  std::thread([&] {
    ASSERT_TRUE(BindThisThread({cpus[1]}));
    const ThreadPool::CallerPin pin(pool);
    EXPECT_THAT(AllowedCpus(), ElementsAre(cpus[1]));
  }).join();
}

// Counts what it is told.
class CountingObserver : public PoolObserver {
 public:
  uint64_t Now() const override { return clock_++; }
  void RegionBegins() override { ++num_regions; }
  void Worked(uint64_t begin, uint64_t end, size_t tasks) override {
    EXPECT_LT(begin, end);
    EXPECT_GE(tasks, 1u);
    num_tasks += tasks;
    ++num_works;
  }
  void Waited(uint64_t begin, uint64_t end) override {
    EXPECT_LT(begin, end);
    waiter = std::this_thread::get_id();
    ++num_waits;
  }

  uint64_t num_looks() const { return clock_; }

  size_t num_regions = 0;
  std::atomic<size_t> num_tasks{0};
  std::atomic<size_t> num_works{0};
  size_t num_waits = 0;
  std::thread::id waiter;

 private:
  mutable std::atomic<uint64_t> clock_{0};
};

TEST(ThreadPoolTest, AnObserverLearnsOfAllWorkBeforeTheRegionEnds) {
  CountingObserver observer;
  ThreadPool pool(3);
  pool.SetObserver(&observer);
  for (size_t region = 1; region <= 200; ++region) {
    pool.ForEach(8, [](size_t) {});
    ASSERT_EQ(observer.num_regions, region);
    ASSERT_EQ(observer.num_tasks, 8 * region);
  }
  EXPECT_LE(observer.num_works, 3u * 200);
  pool.SetObserver(nullptr);
  pool.ForEach(8, [](size_t) {});
  EXPECT_EQ(observer.num_regions, 200u);
}

TEST(ThreadPoolTest, AnObserverLearnsThatTheCallerWaited) {
  CountingObserver observer;
  ThreadPool pool(2);
  pool.SetObserver(&observer);
  const std::thread::id caller = std::this_thread::get_id();
  // The worker ends its task when the caller has looked at the clock for the
  // beginnings of both tasks, the end of its own, and the beginning of its wait
  // (or in five seconds, so that a failure is no hang).
  OnEachThread(pool, [&](size_t) {
    using Clock = std::chrono::steady_clock;
    const auto start = Clock::now();
    while (std::this_thread::get_id() != caller && observer.num_looks() < 4 &&
           Clock::now() - start < std::chrono::seconds(5)) {
    }
  });
  EXPECT_EQ(observer.num_waits, 1u);
  EXPECT_EQ(observer.waiter, caller);
}

TEST(DefaultNumThreadsTest, IsWithinTheProcessorsThatTheThreadMayUse) {
  EXPECT_GE(DefaultNumThreads(), 1u);
  EXPECT_LE(DefaultNumThreads(), AllowedCpus().size());
  std::thread([] {
    ASSERT_TRUE(BindThisThread({AllowedCpus().front()}));
    EXPECT_EQ(DefaultNumThreads(), 1u);
  }).join();
}

}  // namespace
}  // namespace muster

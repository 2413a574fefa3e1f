#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace muster {
namespace {

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

}  // namespace
}  // namespace muster

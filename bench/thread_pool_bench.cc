// What the thread pool costs, and how it bears other processes on its cores.
// usage: thread_pool_bench [TOKENS]
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "base/thread_pool.h"

namespace muster {
namespace {

using Clock = std::chrono::steady_clock;

double MicrosecondsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start)
      .count();
}

// A chain of dependent additions: takes processor time, not wall time.
[[gnu::noinline]] void Work(uint64_t steps) {
  uint64_t x = steps;
  for (uint64_t i = 0; i < steps; ++i) asm volatile("add $1, %0" : "+r"(x));
}

uint64_t StepsPerMicrosecond() {
  constexpr uint64_t kSteps = 100'000;
  double best = 1e9;
  for (int i = 0; i < 2000; ++i) {
    const auto start = Clock::now();
    Work(kSteps);
    best = std::min(best, MicrosecondsSince(start));
  }
  return static_cast<uint64_t>(kSteps / best);
}

double Quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(q *
                                    static_cast<double>(values.size() - 1))];
}

// Processes that never sleep; they end with this object.
class Competitors {
 public:
  explicit Competitors(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (true) Work(1000);
      }
      children_.push_back(child);
    }
  }
  ~Competitors() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }
  Competitors(const Competitors&) = delete;
  Competitors& operator=(const Competitors&) = delete;

 private:
  std::vector<pid_t> children_;
};

template <class Region>
void PrintRegionTime(const char* what, size_t num_threads,
                     const Region& region) {
  constexpr int kRegions = 1000;
  std::vector<double> ns;
  for (int batch = 0; batch < 200; ++batch) {
    const auto start = Clock::now();
    for (int i = 0; i < kRegions; ++i) region();
    ns.push_back(MicrosecondsSince(start) * 1000 / kRegions);
  }
  fmt::print("{}, {} threads: {:.0f} ns (best {:.0f}, 90 % {:.0f})\n", what,
             num_threads, Quantile(ns, 0.5), Quantile(ns, 0),
             Quantile(ns, 0.9));
}

// Regions with nothing in them, while the threads are awake: the caller may end
// them alone. And regions whose tasks wait for each other, so that each thread
// must come: the price of sharing work out.
void MeasureRegions(size_t num_threads) {
  ThreadPool pool(num_threads);
  PrintRegionTime("empty region", num_threads,
                  [&] { pool.ForEach(num_threads, [](size_t) {}); });
  if (num_threads == 1) return;
  PrintRegionTime("region of all threads", num_threads, [&] {
    std::atomic<size_t> num_here{0};
    pool.ForEach(num_threads, [&](size_t) {
      ++num_here;
      while (num_here != num_threads) {
      }
    });
  });
}

// A token is 100 regions of 40 us of work in all, in 4 tasks a thread, and
// 100 us of the caller alone: 2.1 ms on two free cores.
void MeasureTokens(size_t num_threads, size_t num_competitors, int num_tokens,
                   uint64_t steps_per_us) {
  constexpr int kRegions = 100;
  const size_t num_tasks = num_threads * 4;
  const uint64_t steps = 40 * steps_per_us / num_tasks;
  ThreadPool pool(num_threads);
  const Competitors competitors(num_competitors);
  std::vector<double> ms;
  double total = 0;
  for (int token = 0; token < num_tokens; ++token) {
    const auto start = Clock::now();
    for (int i = 0; i < kRegions; ++i) {
      pool.ForEach(num_tasks, [&](size_t) { Work(steps); });
    }
    Work(100 * steps_per_us);
    ms.push_back(MicrosecondsSince(start) / 1000);
    total += ms.back();
  }
  fmt::print(
      "token, {} threads, {} busy processes: {:.2f} ms on average "
      "(best {:.2f}, median {:.2f}, 90 % {:.2f}, 99 % {:.2f})\n",
      num_threads, num_competitors, total / num_tokens, Quantile(ms, 0),
      Quantile(ms, 0.5), Quantile(ms, 0.9), Quantile(ms, 0.99));
}

}  // namespace
}  // namespace muster

int main(int argc, char** argv) {
  setvbuf(stdout, nullptr, _IOLBF, 0);
  const int num_tokens = argc > 1 ? std::atoi(argv[1]) : 500;
  for (const size_t num_threads : {1, 2}) {
    muster::MeasureRegions(num_threads);
  }
  const uint64_t steps = muster::StepsPerMicrosecond();
  for (const size_t num_competitors : {0, 1, 2}) {
    muster::MeasureTokens(2, num_competitors, num_tokens, steps);
  }
  muster::MeasureTokens(4, 0, num_tokens, steps);
  muster::MeasureTokens(1, 0, num_tokens, steps);
}

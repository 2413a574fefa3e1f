#include "base/thread_pool.h"

#include <pthread.h>

#include <string>

#include "base/cgroup.h"
#include "base/futex.h"

namespace muster {
namespace {

// In unfinished_.
constexpr uint32_t kCallerSleeps = uint32_t{1} << 31;

// Of a value of claim_.
uint32_t NumUnclaimed(uint64_t claim) { return static_cast<uint32_t>(claim); }

// Processors for threads 0 .. num_threads - 1; none when they do not suffice.
CpuList Pins(const CpuList& cpus, size_t num_threads) {
  if (num_threads > cpus.size() || num_threads == 1) return {};
  CpuList pins = CpuTopology::OfThisMachine().InPinningOrder(cpus);
  pins.resize(num_threads);
  return pins;
}

// For top, debuggers and traces.
void NameThisThread(size_t worker) {
  // 15 letters are the system's limit.
  const std::string name = "worker " + std::to_string(worker);
  pthread_setname_np(pthread_self(), name.c_str());
}

}  // namespace

ThreadPool::ThreadPool(size_t num_threads)
    : num_workers_(num_threads - 1),
      cpus_(AllowedCpus()),
      pins_(Pins(cpus_, num_threads)),
      max_awake_(std::min(num_threads, std::max<size_t>(1, cpus_.size())) - 1) {
  CHECK_GE(num_threads, 1u);
  workers_.reserve(num_workers_);
  for (size_t i = 1; i < num_threads; ++i) {
    workers_.emplace_back([this, i] { WorkerLoop(i); });
  }
}

ThreadPool::~ThreadPool() {
  stop_.store(true);
  num_wakes_.fetch_add(1);
  FutexWake(num_wakes_, static_cast<uint32_t>(workers_.size()));
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::RunRegion(size_t num_tasks, TaskFn fn, const void* context) {
  CHECK_LT(num_tasks, kCallerSleeps);
  MutexLock lock(caller_mutex_);
  if (PoolObserver* observer = observer_.load(std::memory_order_relaxed)) {
    observer->RegionBegins();
  }
  Publish({fn, context, static_cast<uint32_t>(num_tasks)});
  WakeSleepers(num_tasks - 1);
  RunTasks();
  WaitForLastTask();
}

void ThreadPool::Publish(const Region& region) {
  fn_.store(region.fn, std::memory_order_relaxed);
  context_.store(region.context, std::memory_order_relaxed);
  num_tasks_.store(region.num_tasks, std::memory_order_relaxed);
  unfinished_.store(region.num_tasks, std::memory_order_relaxed);
  const uint64_t number = (claim_.load(std::memory_order_relaxed) >> 32) + 1;
  // Sequentially consistent, as num_asleep_ and what a worker looks at before
  // it sleeps: either it sees the region, or it is seen to sleep.
  claim_.store(number << 32 | region.num_tasks);
}

void ThreadPool::WakeSleepers(size_t wanted) {
  const size_t num_asleep = num_asleep_.load();
  if (num_asleep == 0) return;
  const size_t num_awake = num_workers_ - num_asleep;
  if (num_awake >= max_awake_) return;
  const size_t count = std::min({wanted, num_asleep, max_awake_ - num_awake});
  num_wakes_.fetch_add(1);
  FutexWake(num_wakes_, static_cast<uint32_t>(count));
}

void ThreadPool::RunTasks() {
  uint32_t num_run = 0;
  PoolObserver* observer = nullptr;
  uint64_t begin = 0;
  uint64_t claim = claim_.load(std::memory_order_acquire);
  while (NumUnclaimed(claim) != 0) {
    const Region region = {fn_.load(std::memory_order_relaxed),
                           context_.load(std::memory_order_relaxed),
                           num_tasks_.load(std::memory_order_relaxed)};
    if (!claim_.compare_exchange_weak(claim, claim - 1,
                                      std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
      continue;
    }
    if (num_run == 0) {
      observer = observer_.load(std::memory_order_relaxed);
      if (observer != nullptr) begin = observer->Now();
    }
    region.fn(region.context, region.num_tasks - NumUnclaimed(claim));
    ++num_run;
    --claim;  // a guess that saves a look: corrected when it is wrong
  }
  if (num_run == 0) return;
  if (observer != nullptr) observer->Worked(begin, observer->Now(), num_run);
  const uint32_t before =
      unfinished_.fetch_sub(num_run, std::memory_order_acq_rel);
  if (before - num_run == kCallerSleeps) FutexWake(unfinished_, 1);
}

void ThreadPool::WaitForLastTask() {
  const auto is_done = [this] {
    return (unfinished_.load(std::memory_order_acquire) & ~kCallerSleeps) == 0;
  };
  if (is_done()) return;
  PoolObserver* observer = observer_.load(std::memory_order_relaxed);
  const uint64_t begin = observer == nullptr ? 0 : observer->Now();
  caller_budget_.Wait(is_done, [&] {
    unfinished_.fetch_or(kCallerSleeps);
    while (!is_done()) {
      const uint32_t left = unfinished_.load(std::memory_order_relaxed);
      if (left != kCallerSleeps) FutexWait(unfinished_, left);
    }
  });
  if (observer != nullptr) observer->Waited(begin, observer->Now());
}

void ThreadPool::WorkerLoop(size_t worker) {
  NameThisThread(worker);
  CoreWatch core;
  std::optional<CorePin> pin;
  if (!pins_.empty()) pin.emplace(pins_[worker], cpus_, core);
  SpinBudget budget;
  while (true) {
    budget.Wait([this] { return HasWork(); },
                [&] {
                  if (pin) pin->Review();
                  SleepUntilWork();
                });
    if (stop_.load(std::memory_order_relaxed)) return;
    RunTasks();
  }
}

bool ThreadPool::HasWork() const {
  return NumUnclaimed(claim_.load()) != 0 || stop_.load();
}

void ThreadPool::SleepUntilWork() {
  num_asleep_.fetch_add(1);
  while (true) {
    const uint32_t num_wakes = num_wakes_.load();
    if (HasWork()) break;
    FutexWait(num_wakes_, num_wakes);
  }
  num_asleep_.fetch_sub(1);
}

ThreadPool::CallerPin::CallerPin(ThreadPool& pool) {
  if (pool.pins_.empty()) return;
  const CpuList before = AllowedCpus();
  const unsigned cpu = pool.pins_[0];
  if (std::find(before.begin(), before.end(), cpu) == before.end()) return;
  pin_.emplace(cpu, before, pool.caller_core_);
}

size_t DefaultNumThreads() {
  const CpuList cpus = AllowedCpus();
  const size_t cores = cpus.empty()
                           ? std::thread::hardware_concurrency()
                           : CpuTopology::OfThisMachine().NumCores(cpus);
  const double quota = CpuQuota().value_or(static_cast<double>(cores));
  const size_t granted = std::min(cores, static_cast<size_t>(quota));
  return std::max<size_t>(1, granted);
}

}  // namespace muster

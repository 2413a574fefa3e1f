#include "telemetry/thread_trace.h"

#include <pthread.h>
#include <unistd.h>

#include "base/mutex.h"

namespace muster::telemetry {
namespace {

struct Registry {
  Mutex mutex;
  std::vector<std::shared_ptr<ThreadTrace>> threads GUARDED_BY(mutex);
  std::atomic<uint64_t> session{0};
  std::atomic<size_t> capacity{0};
};

// Never destroyed: threads may outlive main.
Registry& TheRegistry() {
  static Registry& registry = *new Registry;
  return registry;
}

// Shared with the registry: a thread may end before the trace is written, and
// a trace before the thread.
thread_local std::shared_ptr<ThreadTrace> this_threads;
// The same, without what looking at an object with a destructor costs.
thread_local ThreadTrace* this_thread = nullptr;

std::string ThisThreadsName() {
  char name[16] = {};  // the system's limit
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

}  // namespace

ThreadTrace::ThreadTrace(size_t capacity, uint64_t session)
    : capacity_(capacity),
      session_(session),
      thread_id_(gettid()),
      name_(ThisThreadsName()),
      // Zeroed, so that the memory is there before the first zone: a page that
      // came while a zone is recorded would cost more than the zone.
      zones_(std::make_unique<ZoneRecord[]>(capacity)) {}

ThreadTrace& ThreadTrace::Current() {
  Registry& registry = TheRegistry();
  // Acquired: the capacity is that of the session.
  const uint64_t session = registry.session.load(std::memory_order_acquire);
  if (this_thread == nullptr || this_thread->session() != session)
      [[unlikely]] {
    this_threads = std::make_shared<ThreadTrace>(
        registry.capacity.load(std::memory_order_relaxed), session);
    this_thread = this_threads.get();
    MutexLock lock(registry.mutex);
    registry.threads.push_back(this_threads);
  }
  return *this_thread;
}

std::vector<std::shared_ptr<const ThreadTrace>> ThreadTrace::All() {
  Registry& registry = TheRegistry();
  const uint64_t session = registry.session.load(std::memory_order_relaxed);
  std::vector<std::shared_ptr<const ThreadTrace>> all;
  MutexLock lock(registry.mutex);
  all.reserve(registry.threads.size());
  for (const std::shared_ptr<ThreadTrace>& thread : registry.threads) {
    if (thread->session() == session) all.push_back(thread);
  }
  return all;
}

void ThreadTrace::StartSession(size_t capacity) {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mutex);
  registry.threads.clear();
  registry.capacity.store(capacity, std::memory_order_relaxed);
  registry.session.fetch_add(1, std::memory_order_release);
}

}  // namespace muster::telemetry

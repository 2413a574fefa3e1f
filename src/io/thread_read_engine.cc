#include "io/thread_read_engine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "base/check.h"

namespace muster::io {
namespace {

ssize_t ReadSome(const ReadRequest& what) {
  const ssize_t n = pread(what.fd, what.dst.data(), what.dst.size(),
                          static_cast<off_t>(what.offset));
  return n < 0 ? -errno : n;
}

}  // namespace

ThreadReadEngine::ThreadReadEngine(const ThreadReadOptions& options)
    : pieces_({.max_requests = options.depth,
               .max_pieces = options.num_threads,
               .split_bytes = options.split_bytes}) {
  for (size_t i = 0; i < options.num_threads; ++i) {
    threads_.emplace_back([this] { Work(); });
  }
}

ThreadReadEngine::~ThreadReadEngine() {
  {
    MutexLock lock(mutex_);
    pieces_.DropQueue();
    stop_ = true;
  }
  work_.NotifyAll();
  threads_.clear();  // joins
}

std::string ThreadReadEngine::Name() const {
  return fmt::format("pread, {} threads", threads_.size());
}

size_t ThreadReadEngine::Submit(std::span<const ReadRequest> requests) {
  size_t count = 0;
  {
    MutexLock lock(mutex_);
    while (count < requests.size() && pieces_.Add(requests[count])) ++count;
  }
  if (count > 0) work_.NotifyAll();
  return count;
}

size_t ThreadReadEngine::Wait(size_t min_done, std::span<ReadDone> done) {
  CHECK_LE(min_done, done.size());
  MutexLock lock(mutex_);
  CHECK_LE(min_done, pieces_.num_requests());
  while (pieces_.num_done() < min_done) ended_.Wait(mutex_);
  return pieces_.TakeDone(done);
}

size_t ThreadReadEngine::num_in_flight() const {
  MutexLock lock(mutex_);
  return pieces_.num_requests();
}

// One thread's life: a piece at a time, without the lock while it reads.
void ThreadReadEngine::Work() {
  mutex_.Lock();
  while (true) {
    const std::optional<uint32_t> piece = pieces_.Start();
    if (!piece) {
      if (stop_) break;
      work_.Wait(mutex_);
      continue;
    }
    while (true) {
      const ReadRequest rest = pieces_.Rest(*piece);
      mutex_.Unlock();
      const ssize_t result = ReadSome(rest);
      mutex_.Lock();
      if (!pieces_.Ended(*piece, result)) break;
    }
    ended_.NotifyOne();
  }
  mutex_.Unlock();
}

}  // namespace muster::io

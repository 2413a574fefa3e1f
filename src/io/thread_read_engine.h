// Reads by threads that block, for where io_uring is refused, as containers do.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "io/read_engine.h"
#include "io/read_pieces.h"

namespace muster::io {

struct ThreadReadOptions {
  size_t num_threads = 8;  // reads that the kernel has at a time
  size_t depth = 32;       // requests in flight
  size_t split_bytes = 0;  // larger requests are read in such pieces; 0: whole
};

// Its threads sleep while there is nothing to read.
class ThreadReadEngine final : public ReadEngine {
 public:
  explicit ThreadReadEngine(const ThreadReadOptions& options);
  ThreadReadEngine(const ThreadReadEngine&) = delete;
  ThreadReadEngine& operator=(const ThreadReadEngine&) = delete;
  ~ThreadReadEngine() override;

  std::string Name() const override;
  size_t Submit(std::span<const ReadRequest> requests) override;
  size_t Wait(size_t min_done, std::span<ReadDone> done) override;
  size_t num_in_flight() const override;

 private:
  void Work();

  mutable Mutex mutex_;
  CondVar work_;   // there is a piece to start, or the end has come
  CondVar ended_;  // a request has ended
  ReadPieces pieces_ GUARDED_BY(mutex_);
  bool stop_ GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> threads_;
};

}  // namespace muster::io

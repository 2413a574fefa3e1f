// Brings experts from a lower tier into memory: starts reads, and says which
// have ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/thread_pool.h"

namespace muster::experts {

struct Fetched {
  uint32_t expert = 0;
  // kIoError: the read failed. kCorrupt: what came is not the expert.
  Status status;
};

// Where the time and the bytes went, since it was made.
struct FetchCounters {
  uint64_t read_bytes = 0;
  double wait_seconds = 0;    // in Wait, with nothing landed
  double unpack_seconds = 0;  // verifying and converting
  // Of remote models: experts whose bytes were staged already when they were
  // wanted, those that had to be fetched, and those that proved to be wrong and
  // were fetched anew.
  uint64_t staged_experts = 0;
  uint64_t remote_experts = 0;
  uint64_t dropped_experts = 0;
  uint64_t remote_bytes = 0;  // over the network; headers, dense weights too
};

// All methods are called by the one thread that owns the fetcher.
class ExpertFetcher {
 public:
  // Waits for reads in flight.
  virtual ~ExpertFetcher() = default;

  // For people: "3 reads and a conversion an expert, io_uring, direct".
  virtual std::string Name() const = 0;

  // Whether another expert can be started now.
  virtual bool CanStart() const = 0;
  virtual size_t num_in_flight() const = 0;

  // Begins to bring `expert` into `slot`, [its SizeBytes], which stays valid
  // and untouched until the expert is reported. Does not block. REQUIRES:
  // CanStart().
  virtual void Start(uint32_t expert, std::byte* slot) = 0;

  // Waits until at least `min_done` experts have ended, verifies and converts
  // all that have with the threads of `pool`, and appends them to `done`. 0: a
  // look. REQUIRES: min_done <= num_in_flight().
  virtual void Wait(size_t min_done, ThreadPool& pool,
                    std::vector<Fetched>* done) = 0;

  virtual FetchCounters counters() const = 0;
};

}  // namespace muster::experts

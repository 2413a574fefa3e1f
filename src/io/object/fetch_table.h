// What a stage has been asked for: requests for ranges, and the fetches of
// blocks that serve them, each block once however many ask.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "io/object/staged_file.h"
#include "io/remote_files.h"

namespace muster::io {

// Of a range that the stage has given out.
inline StagedFile& FileOf(const RemoteRange& range) {
  return static_cast<StagedFile&>(*range.file);
}
// REQUIRES: the range lies within its file.
BlockRun BlocksOf(const RemoteRange& range);

// Somebody waits for ranges, which are held. Null `ready`: a prefetch.
struct StageRequest {
  std::vector<RemoteRange> ranges;
  uint64_t tag = 0;
  ReadyQueue* ready = nullptr;
  size_t num_pending = 0;  // fetches
  Status status;
};

// A run of blocks that are asked for in one piece.
struct Fetch {
  StagedFile* file = nullptr;
  BlockRun run;
  bool wanted = false;   // by more than a prefetch
  bool started = false;  // and so does not change any more
  std::vector<std::byte> buffer;
  std::vector<StageRequest*> waiters;

  uint64_t block_bytes() const {
    return (run.end - run.begin) * kStagedBlockBytes;
  }
};

// Keeps the files' block states and holds in step with what it is asked. Not
// thread-safe: every call is made under the mutex that guards the files.
class FetchTable {
 public:
  // fetch_bytes: of one fetch, at most.
  explicit FetchTable(uint64_t fetch_bytes) : fetch_bytes_(fetch_bytes) {}

  // Holds the ranges and tells `ready` when all of them are here or one cannot
  // be had; then they are let go. Null `ready`: a prefetch.
  void Add(std::span<const RemoteRange> ranges, uint64_t tag,
           ReadyQueue* ready);
  void Release(std::span<const RemoteRange> ranges);
  // Nobody waits at `ready` any more. What only it waited for and has not been
  // started is not fetched.
  void Forget(ReadyQueue* ready);

  // The one to start next: what is wanted before what is prefetched. nullptr:
  // none is waiting to be started.
  const Fetch* Next() const;
  // Starts it. REQUIRES: Next() is not null.
  Fetch* Start();
  // Gives up what Next() names. REQUIRES: as above.
  void GiveUpNext(const Status& why);
  // A fetch that was started has ended; it is gone then.
  void End(Fetch* fetch, const Status& status);

  uint64_t coming_bytes() const { return coming_bytes_; }  // of started ones

 private:
  void WaitFor(StageRequest* request, StagedFile& file, BlockRun run);
  Fetch* FetchAt(StagedFile& file, uint64_t block);
  Fetch* GrowOrAdd(StagedFile& file, uint64_t block, bool wanted);
  void Want(Fetch* fetch);
  void Complete(StageRequest* request);
  void Remove(Fetch* fetch, const Status& status);
  std::deque<Fetch*>& NextQueue() {
    return wanted_.empty() ? prefetched_ : wanted_;
  }

  const uint64_t fetch_bytes_;
  std::unordered_map<StageRequest*, std::unique_ptr<StageRequest>> requests_;
  // By file and first block: all fetches.
  std::map<std::pair<StagedFile*, uint64_t>, std::unique_ptr<Fetch>> fetches_;
  std::deque<Fetch*> wanted_;      // not started
  std::deque<Fetch*> prefetched_;  // not started
  uint64_t coming_bytes_ = 0;
  uint64_t now_ = 0;  // counts requests
};

}  // namespace muster::io

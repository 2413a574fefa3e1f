// The warm tier: experts from files on a local disk.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "experts/expert_fetcher.h"
#include "experts/expert_store.h"
#include "experts/expert_table.h"
#include "io/direct_file.h"
#include "io/read_engine.h"
#include "tensor/aligned_buffer.h"

namespace muster::experts {

struct WarmOptions {
  size_t max_in_flight = 8;  // experts being read at a time
  bool direct = true;        // past the page cache, where that works
};

class WarmFetcher final : public ExpertFetcher {
 public:
  // Memory that it takes beside the slots.
  static uint64_t StagingBytes(const ExpertStore& store,
                               const ExpertTable& table,
                               const WarmOptions& options);

  // Opens the files of `store`. Fails as opening does.
  static Result<std::unique_ptr<WarmFetcher>> Create(
      std::unique_ptr<ExpertStore> store,
      std::unique_ptr<io::ReadEngine> engine, const WarmOptions& options);
  ~WarmFetcher() override;

  const ExpertStore& store() const { return *store_; }

  std::string Name() const override;
  bool CanStart() const override { return !free_flights_.empty(); }
  size_t num_in_flight() const override {
    return flights_.size() - free_flights_.size();
  }
  void Start(uint32_t expert, std::byte* slot) override;
  void Wait(size_t min_done, ThreadPool& pool,
            std::vector<Fetched>* done) override;
  FetchCounters counters() const override { return counters_; }

 private:
  // An expert on its way.
  struct Flight {
    uint32_t expert = 0;
    std::byte* slot = nullptr;
    AlignedBuffer staging;  // unless reads go into the slot
    std::vector<ExpertRead> reads;
    std::vector<const std::byte*> landed;  // where each read's bytes begin
    size_t num_pending = 0;                // reads that have not ended
    Status status;
  };
  struct Task {
    uint32_t flight = 0;
    size_t task = 0;
  };

  WarmFetcher(std::unique_ptr<ExpertStore> store,
              std::unique_ptr<io::ReadEngine> engine,
              const WarmOptions& options);
  void Submit();
  void TakeIn(const io::ReadDone& done);
  Status Check(const Flight& flight, size_t read,
               const io::ReadDone& done) const;
  void Finish(ThreadPool& pool);

  std::unique_ptr<ExpertStore> store_;
  std::vector<io::DirectFile> files_;
  std::vector<Flight> flights_;  // [max_in_flight]
  std::vector<uint32_t> free_flights_;
  std::deque<io::ReadRequest> queue_;  // reads that the engine has no room for
  std::vector<uint32_t> landed_;       // flights whose reads have all ended
  std::vector<Task> tasks_;
  std::vector<Status> task_status_;
  std::vector<io::ReadDone> done_;
  FetchCounters counters_;
  // Last, so that its reads end before the memory that they go to.
  std::unique_ptr<io::ReadEngine> engine_;
};

}  // namespace muster::experts

// The cold tier: experts of remote files, staged on a local disk before the
// warm tier reads them there.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "experts/expert_fetcher.h"
#include "experts/warm_fetcher.h"
#include "io/remote_files.h"

namespace muster::experts {

// Experts that are being fetched or read at a time.
inline constexpr size_t kMaxColdInFlight = 32;

class ColdFetcher final : public ExpertFetcher {
 public:
  // files: of all paths of `warm`'s store, in order; null for a local one.
  ColdFetcher(std::unique_ptr<WarmFetcher> warm,
              std::vector<std::shared_ptr<io::RemoteFile>> files);
  // Gives up what has not come yet.
  ~ColdFetcher() override;

  std::string Name() const override;
  bool CanStart() const override { return num_in_flight_ < kMaxColdInFlight; }
  size_t num_in_flight() const override { return num_in_flight_; }
  void Start(uint32_t expert, std::byte* slot) override;
  // An expert that is kCorrupt is dropped from the stage first, so that it is
  // fetched anew when it is started again.
  void Wait(size_t min_done, ThreadPool& pool,
            std::vector<Fetched>* done) override;
  FetchCounters counters() const override;

 private:
  enum class Stage : uint8_t { kNone, kComing, kHeld };
  // An expert on its way.
  struct Flight {
    Stage stage = Stage::kNone;
    std::byte* slot = nullptr;
    std::vector<io::RemoteRange> ranges;
  };

  std::vector<io::RemoteRange> RangesOf(uint32_t expert) const;
  void TakeReady();
  void Pass(const io::RangesReady& ready);
  void StartWarm();
  void WaitForStage();
  void ReadStaged(size_t min_done, ThreadPool& pool,
                  std::vector<Fetched>* done);
  void Release(uint32_t expert);

  std::vector<std::shared_ptr<io::RemoteFile>> files_;  // shared by readers
  std::vector<Flight> flights_;                         // by expert number
  std::deque<uint32_t> staged_;  // experts that the warm tier may read
  std::vector<Fetched> failed_;  // not returned yet
  size_t num_in_flight_ = 0;
  io::ReadyQueue ready_;
  std::vector<Fetched> fetched_;
  FetchCounters counters_;
  std::unique_ptr<WarmFetcher> warm_;
};

}  // namespace muster::experts

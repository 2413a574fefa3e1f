#include "experts/cold_fetcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/check.h"
#include "telemetry/trace.h"

namespace muster::experts {

ColdFetcher::ColdFetcher(std::unique_ptr<WarmFetcher> warm,
                         std::vector<std::shared_ptr<io::RemoteFile>> files)
    : files_(std::move(files)), warm_(std::move(warm)) {
  CHECK_EQ(files_.size(), warm_->store().paths().size());
}

ColdFetcher::~ColdFetcher() {
  for (const auto& file : files_) {
    if (file != nullptr) file->files().Forget(&ready_);
  }
  TakeReady();    // what became ready before is held
  warm_.reset();  // its reads end before what they read is let go
  for (uint32_t expert = 0; expert < flights_.size(); ++expert) {
    Release(expert);
  }
}

std::string ColdFetcher::Name() const {
  return fmt::format("staged from a remote store; {}", warm_->Name());
}

std::vector<io::RemoteRange> ColdFetcher::RangesOf(uint32_t expert) const {
  std::vector<ExpertRead> reads;
  warm_->store().Reads(expert, &reads);
  std::vector<io::RemoteRange> ranges;
  for (const ExpertRead& read : reads) {
    if (files_[read.file] == nullptr) continue;
    ranges.push_back({files_[read.file].get(), read.offset, read.size_bytes});
  }
  return ranges;
}

void ColdFetcher::Start(uint32_t expert, std::byte* slot) {
  CHECK(CanStart());
  if (flights_.size() <= expert) flights_.resize(expert + 1);
  Flight& flight = flights_[expert];
  CHECK(flight.stage == Stage::kNone);
  flight.slot = slot;
  flight.ranges = RangesOf(expert);
  ++num_in_flight_;
  if (flight.ranges.empty()) {
    staged_.push_back(expert);
    return StartWarm();
  }
  io::RemoteFiles& files = flight.ranges.front().file->files();
  const bool is_staged = files.Present(flight.ranges);
  ++(is_staged ? counters_.staged_experts : counters_.remote_experts);
  flight.stage = Stage::kComing;
  files.Start(flight.ranges, expert, &ready_);
  // What is staged is ready already.
  TakeReady();
  StartWarm();
}

void ColdFetcher::TakeReady() {
  io::RangesReady ready;
  while (ready_.Take(&ready)) Pass(ready);
}

// Its ranges are here, or cannot be had.
void ColdFetcher::Pass(const io::RangesReady& ready) {
  const auto expert = static_cast<uint32_t>(ready.tag);
  Flight& flight = flights_[expert];
  CHECK(flight.stage == Stage::kComing);
  if (ready.status.ok()) {
    flight.stage = Stage::kHeld;
    staged_.push_back(expert);
    return;
  }
  flight.stage = Stage::kNone;
  failed_.push_back({expert, ready.status});
}

void ColdFetcher::StartWarm() {
  while (!staged_.empty() && warm_->CanStart()) {
    const uint32_t expert = staged_.front();
    staged_.pop_front();
    warm_->Start(expert, flights_[expert].slot);
  }
}

// Local reads are short beside the network: while there are any, it waits for
// them, else for what is coming.
void ColdFetcher::Wait(size_t min_done, ThreadPool& pool,
                       std::vector<Fetched>* done) {
  CHECK_LE(min_done, num_in_flight_);
  const size_t enough = done->size() + min_done;
  while (true) {
    TakeReady();
    StartWarm();
    done->insert(done->end(), failed_.begin(), failed_.end());
    num_in_flight_ -= failed_.size();
    failed_.clear();
    const bool has_enough = done->size() >= enough;
    if (warm_->num_in_flight() > 0) {
      ReadStaged(has_enough ? 0 : 1, pool, done);
    } else if (!has_enough) {
      WaitForStage();
    }
    if (has_enough) return StartWarm();
  }
}

void ColdFetcher::WaitForStage() {
  const telemetry::TraceZone zone("wait for the remote store");
  const auto start = std::chrono::steady_clock::now();
  Pass(ready_.Wait());
  counters_.wait_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
          .count();
}

void ColdFetcher::ReadStaged(size_t min_done, ThreadPool& pool,
                             std::vector<Fetched>* done) {
  fetched_.clear();
  warm_->Wait(min_done, pool, &fetched_);
  for (Fetched& fetched : fetched_) {
    Flight& flight = flights_[fetched.expert];
    if (fetched.status.code() == Code::kCorrupt && !flight.ranges.empty()) {
      flight.ranges.front().file->files().Drop(flight.ranges);
      ++counters_.dropped_experts;
    }
    Release(fetched.expert);
    done->push_back(std::move(fetched));
  }
  num_in_flight_ -= fetched_.size();
}

void ColdFetcher::Release(uint32_t expert) {
  Flight& flight = flights_[expert];
  if (flight.stage != Stage::kHeld) return;
  flight.ranges.front().file->files().Release(flight.ranges);
  flight.stage = Stage::kNone;
}

FetchCounters ColdFetcher::counters() const {
  FetchCounters counters = warm_->counters();
  counters.wait_seconds += counters_.wait_seconds;
  counters.staged_experts = counters_.staged_experts;
  counters.remote_experts = counters_.remote_experts;
  counters.dropped_experts = counters_.dropped_experts;
  for (size_t i = 0; i < files_.size(); ++i) {
    if (files_[i] == nullptr) continue;
    // A file may stand there twice.
    const bool is_first = std::find(files_.begin(), files_.begin() + i,
                                    files_[i]) == files_.begin() + i;
    if (is_first) counters.remote_bytes += files_[i]->fetched_bytes();
  }
  return counters;
}

}  // namespace muster::experts

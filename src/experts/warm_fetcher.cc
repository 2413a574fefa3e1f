#include "experts/warm_fetcher.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/check.h"
#include "telemetry/trace.h"

namespace muster::experts {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Direct reads begin and end on pages: what is read around a range.
uint64_t PageBegin(uint64_t offset) {
  return offset / kExpertAlignment * kExpertAlignment;
}
size_t PagedBytes(const ExpertRead& read) {
  const uint64_t begin = PageBegin(read.offset);
  const uint64_t end = read.offset + read.size_bytes;
  return (end - begin + kExpertAlignment - 1) / kExpertAlignment *
         kExpertAlignment;
}

// Where several reads land one behind the other.
size_t PagedBytes(std::span<const ExpertRead> reads) {
  size_t total = 0;
  for (const ExpertRead& read : reads) total += PagedBytes(read);
  return total;
}

// A tag names a flight and which of its reads.
constexpr uint64_t kReadBits = 8;

}  // namespace

uint64_t WarmFetcher::StagingBytes(const ExpertStore& store,
                                   const ExpertTable& table,
                                   const WarmOptions& options) {
  if (store.reads_into_slot()) return 0;
  size_t largest = 0;
  std::vector<ExpertRead> reads;
  for (uint32_t expert = 0; expert < table.num_experts(); ++expert) {
    reads.clear();
    store.Reads(expert, &reads);
    largest = std::max(largest, PagedBytes(reads));
  }
  return uint64_t{largest} * options.max_in_flight;
}

Result<std::unique_ptr<WarmFetcher>> WarmFetcher::Create(
    std::unique_ptr<ExpertStore> store, std::unique_ptr<io::ReadEngine> engine,
    const WarmOptions& options) {
  std::unique_ptr<WarmFetcher> fetcher(
      new WarmFetcher(std::move(store), std::move(engine), options));
  for (const std::string& path : fetcher->store_->paths()) {
    ASSIGN_OR_RETURN(auto file, options.direct
                                    ? io::DirectFile::Open(path)
                                    : io::DirectFile::OpenBuffered(path));
    fetcher->files_.push_back(std::move(file));
  }
  return fetcher;
}

WarmFetcher::WarmFetcher(std::unique_ptr<ExpertStore> store,
                         std::unique_ptr<io::ReadEngine> engine,
                         const WarmOptions& options)
    : store_(std::move(store)),
      flights_(options.max_in_flight),
      done_(64),
      engine_(std::move(engine)) {
  CHECK_GT(options.max_in_flight, 0u);
  for (uint32_t i = 0; i < flights_.size(); ++i) {
    free_flights_.push_back(static_cast<uint32_t>(flights_.size()) - 1 - i);
  }
}

WarmFetcher::~WarmFetcher() = default;

std::string WarmFetcher::Name() const {
  const bool direct = std::all_of(files_.begin(), files_.end(),
                                  [](const auto& f) { return f.is_direct(); });
  return fmt::format("{}; {}, {}", store_->Name(), engine_->Name(),
                     direct ? "direct" : "through the page cache");
}

void WarmFetcher::Start(uint32_t expert, std::byte* slot) {
  CHECK(CanStart());
  const uint32_t index = free_flights_.back();
  free_flights_.pop_back();
  Flight& flight = flights_[index];
  flight.expert = expert;
  flight.slot = slot;
  flight.reads.clear();
  flight.landed.clear();
  flight.status = {};
  store_->Reads(expert, &flight.reads);
  CHECK_LT(flight.reads.size(), size_t{1} << kReadBits);
  flight.num_pending = flight.reads.size();
  std::byte* dst = slot;
  if (!store_->reads_into_slot()) {
    const size_t needed = PagedBytes(flight.reads);
    if (flight.staging.size_bytes() < needed) {
      flight.staging = AlignedBuffer(needed);
    }
    dst = flight.staging.data();
  }
  for (size_t i = 0; i < flight.reads.size(); ++i) {
    const ExpertRead& read = flight.reads[i];
    const uint64_t begin = PageBegin(read.offset);
    queue_.push_back({.fd = files_[read.file].fd(),
                      .offset = begin,
                      .dst = {dst, PagedBytes(read)},
                      .tag = uint64_t{index} << kReadBits | i});
    flight.landed.push_back(dst + (read.offset - begin));
    dst += PagedBytes(read);
  }
  Submit();
}

void WarmFetcher::Submit() {
  while (!queue_.empty()) {
    std::vector<io::ReadRequest> batch(queue_.begin(), queue_.end());
    const size_t taken = engine_->Submit(batch);
    queue_.erase(queue_.begin(), queue_.begin() + taken);
    if (taken < batch.size()) return;
  }
}

void WarmFetcher::Wait(size_t min_done, ThreadPool& pool,
                       std::vector<Fetched>* done) {
  CHECK_LE(min_done, num_in_flight());
  landed_.clear();
  const Clock::time_point start = Clock::now();
  {
    const telemetry::TraceZone zone("wait for experts");
    do {
      const bool must_wait = landed_.size() < min_done;
      const size_t count = engine_->Wait(must_wait ? 1 : 0, done_);
      for (size_t i = 0; i < count; ++i) TakeIn(done_[i]);
      Submit();
      if (count == 0) break;
    } while (true);
  }
  counters_.wait_seconds += SecondsSince(start);
  if (landed_.empty()) return;
  Finish(pool);
  for (const uint32_t index : landed_) {
    done->push_back(
        {flights_[index].expert, std::move(flights_[index].status)});
    free_flights_.push_back(index);
  }
}

void WarmFetcher::TakeIn(const io::ReadDone& done) {
  const auto index = static_cast<uint32_t>(done.tag >> kReadBits);
  const size_t read = done.tag & ((1u << kReadBits) - 1);
  Flight& flight = flights_[index];
  const Status status = Check(flight, read, done);
  if (flight.status.ok()) flight.status = status;
  counters_.read_bytes += done.size_bytes;
  if (--flight.num_pending == 0) landed_.push_back(index);
}

Status WarmFetcher::Check(const Flight& flight, size_t read,
                          const io::ReadDone& done) const {
  const ExpertRead& wanted = flight.reads[read];
  const std::string& path = files_[wanted.file].path();
  if (done.status == io::ReadStatus::kFailed) {
    return IoError(fmt::format("{}: reading {} bytes at offset {}: {}", path,
                               wanted.size_bytes, wanted.offset,
                               std::strerror(done.error)));
  }
  // The last page of a file comes back short.
  const size_t around = wanted.offset - PageBegin(wanted.offset);
  if (done.size_bytes >= around + wanted.size_bytes) return {};
  return IoError(
      fmt::format("{}: the file ends at {} of the {} bytes wanted at offset {}",
                  path, done.size_bytes - std::min(around, done.size_bytes),
                  wanted.size_bytes, wanted.offset));
}

// What has landed becomes experts, all threads sharing the work.
void WarmFetcher::Finish(ThreadPool& pool) {
  const telemetry::TraceZone zone("unpack experts");
  const Clock::time_point start = Clock::now();
  tasks_.clear();
  for (const uint32_t index : landed_) {
    if (!flights_[index].status.ok()) continue;
    const size_t num_tasks = store_->NumTasks(flights_[index].expert);
    for (size_t task = 0; task < num_tasks; ++task) {
      tasks_.push_back({index, task});
    }
  }
  task_status_.assign(tasks_.size(), {});
  pool.ForEach(tasks_.size(), [&](size_t i) {
    const Flight& flight = flights_[tasks_[i].flight];
    task_status_[i] = store_->Finish(flight.expert, tasks_[i].task,
                                     flight.landed, flight.slot);
  });
  for (size_t i = 0; i < tasks_.size(); ++i) {
    if (!task_status_[i].ok()) {
      flights_[tasks_[i].flight].status = std::move(task_status_[i]);
    }
  }
  counters_.unpack_seconds += SecondsSince(start);
}

}  // namespace muster::experts

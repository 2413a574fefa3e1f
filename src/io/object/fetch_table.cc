#include "io/object/fetch_table.h"

#include <algorithm>

#include "base/check.h"

namespace muster::io {

BlockRun BlocksOf(const RemoteRange& range) {
  CHECK_LE(range.size_bytes, range.file->size_bytes());
  CHECK_LE(range.offset, range.file->size_bytes() - range.size_bytes);
  return StagedFile::BlocksOf(range.offset, range.size_bytes);
}

void FetchTable::Add(std::span<const RemoteRange> ranges, uint64_t tag,
                     ReadyQueue* ready) {
  auto owned = std::make_unique<StageRequest>(StageRequest{
      .ranges = {ranges.begin(), ranges.end()}, .tag = tag, .ready = ready});
  StageRequest* request = owned.get();
  requests_.emplace(request, std::move(owned));
  ++now_;
  for (const RemoteRange& range : ranges) {
    FileOf(range).Hold(BlocksOf(range), now_);
    WaitFor(request, FileOf(range), BlocksOf(range));
  }
  if (request->num_pending == 0) Complete(request);
}

void FetchTable::WaitFor(StageRequest* request, StagedFile& file,
                         BlockRun run) {
  for (uint64_t block = run.begin; block < run.end;) {
    if (file.state(block) == StagedFile::State::kPresent) {
      ++block;
      continue;
    }
    const bool wanted = request->ready != nullptr;
    Fetch* fetch = file.state(block) == StagedFile::State::kComing
                       ? FetchAt(file, block)
                       : GrowOrAdd(file, block, wanted);
    if (wanted) Want(fetch);
    if (std::find(fetch->waiters.begin(), fetch->waiters.end(), request) ==
        fetch->waiters.end()) {
      fetch->waiters.push_back(request);
      ++request->num_pending;
    }
    block = fetch->run.end;
  }
}

Fetch* FetchTable::FetchAt(StagedFile& file, uint64_t block) {
  auto it = fetches_.upper_bound({&file, block});
  CHECK(it != fetches_.begin());
  --it;
  CHECK(it->first.first == &file && block < it->second->run.end);
  return it->second.get();
}

// A neighbour that has not been started takes the block in.
Fetch* FetchTable::GrowOrAdd(StagedFile& file, uint64_t block, bool wanted) {
  file.SetComing({block, block + 1});
  if (block > 0 && file.state(block - 1) == StagedFile::State::kComing) {
    Fetch* before = FetchAt(file, block - 1);
    const uint64_t size_bytes = file.BytesOf(before->run);
    if (!before->started && before->wanted == wanted &&
        size_bytes + kStagedBlockBytes <= fetch_bytes_) {
      ++before->run.end;
      return before;
    }
  }
  auto owned = std::make_unique<Fetch>(
      Fetch{.file = &file, .run = {block, block + 1}, .wanted = wanted});
  Fetch* fetch = owned.get();
  fetches_.emplace(std::pair(&file, block), std::move(owned));
  (wanted ? wanted_ : prefetched_).push_back(fetch);
  return fetch;
}

void FetchTable::Want(Fetch* fetch) {
  if (fetch->wanted) return;
  fetch->wanted = true;
  if (fetch->started) return;
  std::erase(prefetched_, fetch);
  wanted_.push_back(fetch);
}

void FetchTable::Complete(StageRequest* request) {
  const bool keeps_holds = request->ready != nullptr && request->status.ok();
  if (!keeps_holds) Release(request->ranges);
  if (request->ready != nullptr) {
    request->ready->Push({request->tag, std::move(request->status)});
  }
  requests_.erase(request);
}

void FetchTable::Release(std::span<const RemoteRange> ranges) {
  for (const RemoteRange& range : ranges) {
    FileOf(range).Release(BlocksOf(range));
  }
}

void FetchTable::Forget(ReadyQueue* ready) {
  std::vector<StageRequest*> forgotten;
  for (const auto& [request, owned] : requests_) {
    if (request->ready == ready) forgotten.push_back(request);
  }
  for (StageRequest* request : forgotten) {
    for (const auto& [key, fetch] : fetches_) {
      std::erase(fetch->waiters, request);
    }
    Release(request->ranges);
    requests_.erase(request);
  }
  // What nobody waits for and has not begun need not be fetched.
  std::vector<Fetch*> idle;
  for (Fetch* fetch : wanted_) {
    if (fetch->waiters.empty()) idle.push_back(fetch);
  }
  for (Fetch* fetch : idle) {
    std::erase(wanted_, fetch);
    Remove(fetch, Status(Code::kCancelled, "forgotten"));
  }
}

const Fetch* FetchTable::Next() const {
  if (!wanted_.empty()) return wanted_.front();
  return prefetched_.empty() ? nullptr : prefetched_.front();
}

Fetch* FetchTable::Start() {
  Fetch* fetch = NextQueue().front();
  NextQueue().pop_front();
  fetch->started = true;
  coming_bytes_ += fetch->block_bytes();
  return fetch;
}

void FetchTable::GiveUpNext(const Status& why) {
  Fetch* fetch = NextQueue().front();
  NextQueue().pop_front();
  Remove(fetch, why);
}

void FetchTable::End(Fetch* fetch, const Status& status) {
  CHECK(fetch->started);
  coming_bytes_ -= fetch->block_bytes();
  Remove(fetch, status);
}

void FetchTable::Remove(Fetch* fetch, const Status& status) {
  if (status.ok()) {
    fetch->file->SetPresent(fetch->run);
  } else {
    fetch->file->SetAbsent(fetch->run);
  }
  for (StageRequest* request : fetch->waiters) {
    if (request->status.ok()) request->status = status;
    if (--request->num_pending == 0) Complete(request);
  }
  fetches_.erase({fetch->file, fetch->run.begin});
}

}  // namespace muster::io

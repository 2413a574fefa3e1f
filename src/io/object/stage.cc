#include "io/object/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <map>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "io/object/closed_stages.h"
#include "io/object/staged_file.h"
#include "io/user_cache.h"

namespace muster::io {
namespace {

using State = StagedFile::State;

class Stage final : public RemoteFiles,
                    public std::enable_shared_from_this<Stage> {
 public:
  Stage(ObjectSettings settings, StageOptions options)
      : options_(std::move(options)),
        closed_(FindClosedStages(options_.folder)),
        client_(std::move(settings), ClientOptions(options_)) {
    for (const ClosedStage& closed : closed_) {
      closed_bytes_ += closed.size_bytes;
    }
    thread_ = std::thread([this] { Run(); });
  }
  ~Stage() override;

  Result<std::shared_ptr<RemoteFile>> Open(const std::string& url) override;
  void Start(std::span<const RemoteRange> ranges, uint64_t tag,
             ReadyQueue* ready) override;
  void Release(std::span<const RemoteRange> ranges) override;
  void Forget(ReadyQueue* ready) override;
  void Prefetch(std::span<const RemoteRange> ranges) override;
  void Drop(std::span<const RemoteRange> ranges) override;
  bool Present(std::span<const RemoteRange> ranges) override;
  uint64_t MemoryBytes() const override {
    return options_.max_fetches * options_.fetch_bytes;
  }

 private:
  // Somebody waits for ranges, which are held. Null `ready`: a prefetch.
  struct Request {
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
    std::vector<Request*> waiters;
  };
  struct OpenCall {
    const std::string* url;
    bool done = false;
    Result<StagedFile*> file = Status();
  };

  static ObjectClientOptions ClientOptions(const StageOptions& options) {
    ObjectClientOptions client = options.client;
    client.max_in_flight = std::max(client.max_in_flight, options.max_fetches);
    return client;
  }
  static StagedFile& FileOf(const RemoteRange& range) {
    return static_cast<StagedFile&>(*range.file);
  }
  static BlockRun BlocksOf(const RemoteRange& range) {
    CHECK_LE(range.size_bytes, range.file->size_bytes());
    CHECK_LE(range.offset, range.file->size_bytes() - range.size_bytes);
    return StagedFile::BlocksOf(range.offset, range.size_bytes);
  }

  // Of any thread.
  void Add(std::span<const RemoteRange> ranges, uint64_t tag, ReadyQueue* ready)
      REQUIRES(mutex_);
  void WaitFor(Request* request, StagedFile& file, BlockRun run)
      REQUIRES(mutex_);
  Fetch* FetchAt(StagedFile& file, uint64_t block) REQUIRES(mutex_);
  Fetch* GrowOrAdd(StagedFile& file, uint64_t block, bool wanted)
      REQUIRES(mutex_);
  void Want(Fetch* fetch) REQUIRES(mutex_);
  void Complete(Request* request) REQUIRES(mutex_);
  void ReleaseHolds(std::span<const RemoteRange> ranges) REQUIRES(mutex_);
  void WakeThread();

  // Of the stage's thread.
  void Run();
  bool WaitForWork();
  void ServeOpens();
  Result<StagedFile*> OpenHere(const std::string& url);
  void StartFetches();
  Fetch* NextFetch();
  void Submit(Fetch* fetch);
  void TakeIn(const RangeDone& done);
  void End(Fetch* fetch, const Status& status) REQUIRES(mutex_);
  uint64_t UsedBytes() REQUIRES(mutex_);
  bool HasRoom(uint64_t size_bytes) REQUIRES(mutex_);
  bool MakeRoom(uint64_t size_bytes);
  bool GiveUpExtents(uint64_t size_bytes);
  void Sync();

  const StageOptions options_;

  // The thread's own.
  std::vector<ClosedStage> closed_;
  std::vector<std::vector<std::byte>> buffers_;
  uint64_t unsynced_bytes_ = 0;

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::deque<OpenCall*> opens_ GUARDED_BY(mutex_);
  std::map<std::string, StagedFile*> by_url_ GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<StagedFile>> files_ GUARDED_BY(mutex_);
  std::unordered_map<Request*, std::unique_ptr<Request>> requests_
      GUARDED_BY(mutex_);
  // By file and first block: all fetches.
  std::map<std::pair<StagedFile*, uint64_t>, std::unique_ptr<Fetch>> fetches_
      GUARDED_BY(mutex_);
  std::deque<Fetch*> wanted_ GUARDED_BY(mutex_);      // not started
  std::deque<Fetch*> prefetched_ GUARDED_BY(mutex_);  // not started
  uint64_t coming_bytes_ GUARDED_BY(mutex_) = 0;      // of started fetches
  uint64_t closed_bytes_ GUARDED_BY(mutex_) = 0;
  uint64_t now_ GUARDED_BY(mutex_) = 0;

  // Behind the fetches, so that it ends before the memory that it writes to.
  ObjectClient client_;  // the thread's own, but for Interrupt
  std::thread thread_;
};

Stage::~Stage() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  WakeThread();
  thread_.join();
}

// ---- Of any thread.

void Stage::WakeThread() {
  {
    MutexLock lock(mutex_);
    changed_.NotifyAll();
  }
  client_.Interrupt();
}

Result<std::shared_ptr<RemoteFile>> Stage::Open(const std::string& url) {
  OpenCall call{.url = &url};
  {
    MutexLock lock(mutex_);
    opens_.push_back(&call);
  }
  WakeThread();
  MutexLock lock(mutex_);
  while (!call.done) changed_.Wait(mutex_);
  if (!call.file.ok()) return call.file.status();
  return std::shared_ptr<RemoteFile>(shared_from_this(), *call.file);
}

void Stage::Start(std::span<const RemoteRange> ranges, uint64_t tag,
                  ReadyQueue* ready) {
  CHECK(ready != nullptr);
  {
    MutexLock lock(mutex_);
    Add(ranges, tag, ready);
  }
  WakeThread();
}

void Stage::Prefetch(std::span<const RemoteRange> ranges) {
  uint64_t total = 0;
  for (const RemoteRange& range : ranges) total += range.size_bytes;
  // It would push out what it has fetched itself.
  if (options_.disk_bytes != 0 && total > options_.disk_bytes / 2) return;
  {
    MutexLock lock(mutex_);
    Add(ranges, 0, nullptr);
  }
  WakeThread();
}

void Stage::Add(std::span<const RemoteRange> ranges, uint64_t tag,
                ReadyQueue* ready) {
  auto owned = std::make_unique<Request>(Request{
      .ranges = {ranges.begin(), ranges.end()}, .tag = tag, .ready = ready});
  Request* request = owned.get();
  requests_.emplace(request, std::move(owned));
  ++now_;
  for (const RemoteRange& range : ranges) {
    FileOf(range).Hold(BlocksOf(range), now_);
    WaitFor(request, FileOf(range), BlocksOf(range));
  }
  if (request->num_pending == 0) Complete(request);
}

void Stage::WaitFor(Request* request, StagedFile& file, BlockRun run) {
  for (uint64_t block = run.begin; block < run.end;) {
    if (file.state(block) == State::kPresent) {
      ++block;
      continue;
    }
    const bool wanted = request->ready != nullptr;
    Fetch* fetch = file.state(block) == State::kComing
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

Stage::Fetch* Stage::FetchAt(StagedFile& file, uint64_t block) {
  auto it = fetches_.upper_bound({&file, block});
  CHECK(it != fetches_.begin());
  --it;
  CHECK(it->first.first == &file && block < it->second->run.end);
  return it->second.get();
}

// A neighbour that has not been started takes the block in.
Stage::Fetch* Stage::GrowOrAdd(StagedFile& file, uint64_t block, bool wanted) {
  file.SetComing({block, block + 1});
  if (block > 0 && file.state(block - 1) == State::kComing) {
    Fetch* before = FetchAt(file, block - 1);
    const uint64_t size_bytes = file.BytesOf(before->run);
    if (!before->started && before->wanted == wanted &&
        size_bytes + kStagedBlockBytes <= options_.fetch_bytes) {
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

void Stage::Want(Fetch* fetch) {
  if (fetch->wanted) return;
  fetch->wanted = true;
  if (fetch->started) return;
  std::erase(prefetched_, fetch);
  wanted_.push_back(fetch);
}

void Stage::Complete(Request* request) {
  const bool keeps_holds = request->ready != nullptr && request->status.ok();
  if (!keeps_holds) ReleaseHolds(request->ranges);
  if (request->ready != nullptr) {
    request->ready->Push({request->tag, std::move(request->status)});
  }
  requests_.erase(request);
}

void Stage::ReleaseHolds(std::span<const RemoteRange> ranges) {
  for (const RemoteRange& range : ranges) {
    FileOf(range).Release(BlocksOf(range));
  }
}

void Stage::Release(std::span<const RemoteRange> ranges) {
  MutexLock lock(mutex_);
  ReleaseHolds(ranges);
}

void Stage::Forget(ReadyQueue* ready) {
  MutexLock lock(mutex_);
  std::vector<Request*> forgotten;
  for (const auto& [request, owned] : requests_) {
    if (request->ready == ready) forgotten.push_back(request);
  }
  for (Request* request : forgotten) {
    for (const auto& [key, fetch] : fetches_) {
      std::erase(fetch->waiters, request);
    }
    ReleaseHolds(request->ranges);
    requests_.erase(request);
  }
  // What nobody waits for and has not begun need not be fetched.
  std::vector<Fetch*> idle;
  for (Fetch* fetch : wanted_) {
    if (fetch->waiters.empty()) idle.push_back(fetch);
  }
  for (Fetch* fetch : idle) {
    std::erase(wanted_, fetch);
    End(fetch, Status(Code::kCancelled, "forgotten"));
  }
}

void Stage::Drop(std::span<const RemoteRange> ranges) {
  MutexLock lock(mutex_);
  for (const RemoteRange& range : ranges) {
    StagedFile& file = FileOf(range);
    const BlockRun run = BlocksOf(range);
    for (uint64_t block = run.begin; block < run.end; ++block) {
      if (file.state(block) == State::kPresent) {
        file.SetAbsent({block, block + 1});
      }
    }
    // If the map cannot be told, the checksum finds the bytes again.
    (void)file.WriteMap();
  }
}

bool Stage::Present(std::span<const RemoteRange> ranges) {
  MutexLock lock(mutex_);
  return std::all_of(ranges.begin(), ranges.end(), [](const auto& range) {
    return FileOf(range).IsPresent(BlocksOf(range));
  });
}

// ---- Of the stage's thread.

void Stage::Run() {
  while (WaitForWork()) {
    ServeOpens();
    StartFetches();
    if (client_.num_in_flight() > 0) {
      std::array<RangeDone, 16> done;
      const size_t count = client_.Wait(1, done);
      for (size_t i = 0; i < count; ++i) TakeIn(done[i]);
    }
    if (unsynced_bytes_ >= options_.sync_bytes) Sync();
  }
  Sync();
}

bool Stage::WaitForWork() {
  if (client_.num_in_flight() > 0) {
    MutexLock lock(mutex_);
    return !stopping_;
  }
  while (true) {
    {
      MutexLock lock(mutex_);
      if (stopping_) return false;
      if (!opens_.empty() || !wanted_.empty() || !prefetched_.empty()) {
        return true;
      }
      if (unsynced_bytes_ < options_.sync_bytes / 8) {
        changed_.Wait(mutex_);
        continue;
      }
    }
    Sync();  // while there is nothing else to do
  }
}

void Stage::ServeOpens() {
  while (true) {
    OpenCall* call = nullptr;
    {
      MutexLock lock(mutex_);
      if (opens_.empty()) return;
      call = opens_.front();
      opens_.pop_front();
    }
    auto file = OpenHere(*call->url);
    MutexLock lock(mutex_);
    call->file = std::move(file);
    call->done = true;
    changed_.NotifyAll();
  }
}

Result<StagedFile*> Stage::OpenHere(const std::string& url) {
  {
    MutexLock lock(mutex_);
    const auto it = by_url_.find(url);
    if (it != by_url_.end()) return it->second;
  }
  ASSIGN_OR_RETURN(const ObjectId object, client_.Open(url));
  const ObjectInfo& info = client_.Info(object);
  if (!info.accepts_ranges) {
    return Unsupported(
        fmt::format("{}: its server knows no ranges, so that it cannot be read "
                    "in parts; download it and name the file",
                    info.name));
  }
  const StagedIdentity identity = {.name = info.name,
                                   .size_bytes = info.size_bytes,
                                   .etag = info.etag,
                                   .sha256 = info.sha256};
  const std::string folder = options_.folder + "/" + StageNameOf(url, identity);
  ASSIGN_OR_RETURN(auto file,
                   StagedFile::Open(*this, folder, object, identity));
  MutexLock lock(mutex_);
  const auto closed =
      std::find_if(closed_.begin(), closed_.end(),
                   [&](const ClosedStage& c) { return c.folder == folder; });
  if (closed != closed_.end()) {
    closed_bytes_ -= closed->size_bytes;
    closed_.erase(closed);
  }
  StagedFile* opened = file.get();
  files_.push_back(std::move(file));
  by_url_[url] = opened;
  return opened;
}

void Stage::StartFetches() {
  while (client_.num_in_flight() < options_.max_fetches) {
    Fetch* fetch = NextFetch();
    if (fetch == nullptr) return;
    Submit(fetch);
  }
}

// What is wanted is fetched even when there is no room but what is held: that
// much is needed at once. A prefetch is not.
Stage::Fetch* Stage::NextFetch() {
  while (true) {
    uint64_t size_bytes = 0;
    {
      MutexLock lock(mutex_);
      if (wanted_.empty() && prefetched_.empty()) return nullptr;
      const Fetch* next =
          wanted_.empty() ? prefetched_.front() : wanted_.front();
      size_bytes = (next->run.end - next->run.begin) * kStagedBlockBytes;
    }
    const bool has_room = MakeRoom(size_bytes);
    MutexLock lock(mutex_);
    if (wanted_.empty() && prefetched_.empty()) return nullptr;
    auto& queue = wanted_.empty() ? prefetched_ : wanted_;
    Fetch* fetch = queue.front();
    queue.pop_front();
    if (!fetch->wanted && !has_room) {
      End(fetch, Status(Code::kCancelled, "no room"));
      continue;
    }
    fetch->started = true;
    coming_bytes_ += (fetch->run.end - fetch->run.begin) * kStagedBlockBytes;
    return fetch;
  }
}

void Stage::Submit(Fetch* fetch) {
  if (!buffers_.empty()) {
    fetch->buffer = std::move(buffers_.back());
    buffers_.pop_back();
  }
  fetch->buffer.resize(static_cast<size_t>(fetch->file->BytesOf(fetch->run)));
  const RangeRequest request = {.object = fetch->file->object(),
                                .offset = fetch->run.begin * kStagedBlockBytes,
                                .dst = fetch->buffer,
                                .tag = reinterpret_cast<uintptr_t>(fetch)};
  CHECK_EQ(client_.Submit({&request, 1}), 1u);
}

void Stage::TakeIn(const RangeDone& done) {
  auto* fetch = reinterpret_cast<Fetch*>(static_cast<uintptr_t>(done.tag));
  StagedFile& file = *fetch->file;
  Status status = done.status;
  if (status.ok()) {
    file.AddFetched(fetch->buffer.size());
    status = file.Write(fetch->run, fetch->buffer);
  }
  if (status.ok()) unsynced_bytes_ += fetch->buffer.size();
  buffers_.push_back(std::move(fetch->buffer));
  MutexLock lock(mutex_);
  coming_bytes_ -= (fetch->run.end - fetch->run.begin) * kStagedBlockBytes;
  End(fetch, status);
}

void Stage::End(Fetch* fetch, const Status& status) {
  if (status.ok()) {
    fetch->file->SetPresent(fetch->run);
  } else {
    fetch->file->SetAbsent(fetch->run);
  }
  for (Request* request : fetch->waiters) {
    if (request->status.ok()) request->status = status;
    if (--request->num_pending == 0) Complete(request);
  }
  fetches_.erase({fetch->file, fetch->run.begin});
}

uint64_t Stage::UsedBytes() {
  uint64_t used = closed_bytes_ + coming_bytes_;
  for (const auto& file : files_) used += file->present_bytes();
  return used;
}

bool Stage::HasRoom(uint64_t size_bytes) {
  return options_.disk_bytes == 0 ||
         UsedBytes() + size_bytes <= options_.disk_bytes;
}

bool Stage::MakeRoom(uint64_t size_bytes) {
  while (true) {
    {
      MutexLock lock(mutex_);
      if (HasRoom(size_bytes)) return true;
      if (!closed_.empty()) closed_bytes_ -= closed_.front().size_bytes;
    }
    if (closed_.empty()) break;
    // One that is in use elsewhere is not ours to count.
    RemoveClosedStage(closed_.front());
    closed_.erase(closed_.begin());
  }
  return GiveUpExtents(size_bytes);
}

bool Stage::GiveUpExtents(uint64_t size_bytes) {
  struct Candidate {
    uint64_t last_use;
    StagedFile* file;
    uint64_t extent;
  };
  std::vector<std::pair<StagedFile*, BlockRun>> punched;
  std::vector<StagedFile*> changed;
  bool has_room = false;
  {
    MutexLock lock(mutex_);
    std::vector<Candidate> candidates;
    for (const auto& file : files_) {
      for (uint64_t extent = 0; extent < file->num_extents(); ++extent) {
        if (!file->CanGiveUp(extent)) continue;
        candidates.push_back({file->LastUse(extent), file.get(), extent});
      }
    }
    std::stable_sort(
        candidates.begin(), candidates.end(),
        [](const auto& a, const auto& b) { return a.last_use < b.last_use; });
    // Some more at once, so that this is rare.
    const uint64_t wanted =
        std::min(options_.disk_bytes, size_bytes + options_.disk_bytes / 16);
    for (const Candidate& candidate : candidates) {
      if (HasRoom(wanted)) break;
      for (const BlockRun run : candidate.file->GiveUp(candidate.extent)) {
        punched.emplace_back(candidate.file, run);
      }
      (void)candidate.file->WriteMap();
      changed.push_back(candidate.file);
    }
    has_room = HasRoom(size_bytes);
  }
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  for (StagedFile* file : changed) {
    // Without it a power failure could leave holes that the map calls present.
    if (!file->SyncMap().ok()) return has_room;
  }
  for (const auto& [file, run] : punched) (void)file->Punch(run);
  return has_room;
}

// Data first, then the map that names it.
void Stage::Sync() {
  unsynced_bytes_ = 0;
  std::vector<StagedFile*> files;
  {
    MutexLock lock(mutex_);
    for (const auto& file : files_) files.push_back(file.get());
  }
  for (StagedFile* file : files) {
    std::vector<uint64_t> blocks;
    {
      MutexLock lock(mutex_);
      blocks = file->TakeUnsynced();
    }
    // What could not be flushed is fetched again by a later run.
    if (blocks.empty() || !file->FlushData().ok()) continue;
    MutexLock lock(mutex_);
    (void)file->NameInMap(blocks);
  }
}

}  // namespace

Result<std::shared_ptr<RemoteFiles>> OpenStage(ObjectSettings settings,
                                               StageOptions options) {
  CHECK_GT(options.max_fetches, 0u);
  CHECK_GE(options.fetch_bytes, kStagedBlockBytes);
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  if (error) {
    return IoError(fmt::format("{}: {}", options.folder, error.message()));
  }
  return std::shared_ptr<RemoteFiles>(
      std::make_shared<Stage>(std::move(settings), std::move(options)));
}

Result<std::string> DefaultStageFolder() { return UserCachePath("stage"); }

}  // namespace muster::io

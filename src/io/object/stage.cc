#include "io/object/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "io/object/closed_stages.h"
#include "io/object/fetch_table.h"
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
        fetches_(options_.fetch_bytes),
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

  // Of any thread.
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
  FetchTable fetches_ GUARDED_BY(mutex_);
  uint64_t closed_bytes_ GUARDED_BY(mutex_) = 0;

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
    fetches_.Add(ranges, tag, ready);
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
    fetches_.Add(ranges, 0, nullptr);
  }
  WakeThread();
}

void Stage::Release(std::span<const RemoteRange> ranges) {
  MutexLock lock(mutex_);
  fetches_.Release(ranges);
}

void Stage::Forget(ReadyQueue* ready) {
  MutexLock lock(mutex_);
  fetches_.Forget(ready);
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
      if (!opens_.empty() || fetches_.Next() != nullptr) return true;
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
Fetch* Stage::NextFetch() {
  while (true) {
    uint64_t size_bytes = 0;
    {
      MutexLock lock(mutex_);
      if (fetches_.Next() == nullptr) return nullptr;
      size_bytes = fetches_.Next()->block_bytes();
    }
    const bool has_room = MakeRoom(size_bytes);
    MutexLock lock(mutex_);
    // It may be another by now.
    const Fetch* next = fetches_.Next();
    if (next == nullptr) return nullptr;
    if (next->wanted || has_room) return fetches_.Start();
    fetches_.GiveUpNext(Status(Code::kCancelled, "no room"));
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
  fetches_.End(fetch, status);
}

uint64_t Stage::UsedBytes() {
  uint64_t used = closed_bytes_ + fetches_.coming_bytes();
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

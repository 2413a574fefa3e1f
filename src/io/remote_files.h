// Remote files as the layers above see them: a local file that has holes, and
// somebody who fills them before they are read. The object store's side is in
// io/object/stage.h; whoever starts the program installs it here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/mutex.h"
#include "base/status.h"

namespace muster::io {

class RemoteFiles;

// Lives as long as what keeps it: a File, or whoever opened it.
class RemoteFile {
 public:
  RemoteFile(RemoteFiles& files, std::string name, std::string local_path,
             uint64_t size_bytes)
      : files_(files),
        name_(std::move(name)),
        local_path_(std::move(local_path)),
        size_bytes_(size_bytes) {}
  virtual ~RemoteFile() = default;
  RemoteFile(const RemoteFile&) = delete;
  RemoteFile& operator=(const RemoteFile&) = delete;

  RemoteFiles& files() const { return files_; }
  const std::string& name() const { return name_; }  // its URL, no secrets
  // A file of size_bytes; what is not held there may be a hole.
  const std::string& local_path() const { return local_path_; }
  uint64_t size_bytes() const { return size_bytes_; }
  // That came over the network since it was opened. Thread-safe.
  uint64_t fetched_bytes() const { return fetched_bytes_; }

 protected:
  std::atomic<uint64_t> fetched_bytes_ = 0;

 private:
  RemoteFiles& files_;
  const std::string name_;
  const std::string local_path_;
  const uint64_t size_bytes_;
};

// Within the file.
struct RemoteRange {
  RemoteFile* file = nullptr;
  uint64_t offset = 0;
  uint64_t size_bytes = 0;
};

struct RangesReady {
  uint64_t tag = 0;
  Status status;  // ok: the ranges can be read, and are held
};

// Where a request's end is told. Thread-safe.
class ReadyQueue {
 public:
  void Push(RangesReady ready);
  // Blocks until there is one.
  RangesReady Wait();
  // False: there is none.
  bool Take(RangesReady* ready);

 private:
  Mutex mutex_;
  CondVar pushed_;
  std::deque<RangesReady> queue_ GUARDED_BY(mutex_);
};

// Thread-safe.
class RemoteFiles {
 public:
  virtual ~RemoteFiles() = default;

  // Blocks. The same file for the same URL. It keeps these RemoteFiles alive.
  virtual Result<std::shared_ptr<RemoteFile>> Open(const std::string& url) = 0;

  // Fetches what is missing of `ranges`, then pushes one RangesReady with `tag`
  // to `ready`. Where it is ok, the ranges stay until Release. Never blocks.
  virtual void Start(std::span<const RemoteRange> ranges, uint64_t tag,
                     ReadyQueue* ready) = 0;
  // REQUIRES: the same ranges were Started and became ready.
  virtual void Release(std::span<const RemoteRange> ranges) = 0;
  // Nothing that was Started is pushed to `ready` any more. What was not ready
  // is given up.
  virtual void Forget(ReadyQueue* ready) = 0;

  // They will be wanted: fetched behind what was Started, not held.
  virtual void Prefetch(std::span<const RemoteRange> ranges) = 0;
  // They proved to be wrong: fetched again when they are Started next.
  virtual void Drop(std::span<const RemoteRange> ranges) = 0;
  virtual bool Present(std::span<const RemoteRange> ranges) = 0;

  // Memory that it takes for what is on its way, at most.
  virtual uint64_t MemoryBytes() const = 0;
};

// Ranges that are held until this ends.
class RangeHold {
 public:
  // Blocks until they are here. Fails as fetching does.
  static Result<RangeHold> Take(RemoteRange range);
  ~RangeHold() { Release(); }
  RangeHold(RangeHold&& other) noexcept : range_(other.range_) {
    other.range_.file = nullptr;
  }
  RangeHold& operator=(RangeHold&&) = delete;

 private:
  explicit RangeHold(RemoteRange range) : range_(range) {}
  void Release();

  RemoteRange range_;
};

// A URL, not a path: it has "://".
bool IsRemotePath(std::string_view path);

// Who opens URLs from now on, as long as the caller keeps it. Thread-safe.
void InstallRemoteFiles(const std::shared_ptr<RemoteFiles>& files);
// Fails with kUnsupported where nobody does, and as RemoteFiles::Open.
Result<std::shared_ptr<RemoteFile>> OpenRemoteFile(const std::string& url);

}  // namespace muster::io
